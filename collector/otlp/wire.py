"""OTLP's trace messages with attributes, events and links left as they came.

Wire-compatible with `opentelemetry.proto.collector.trace.v1`: the same field numbers, but what is
a message there is bytes here. An attribute that has been read once is known again by its bytes
(most of a span's attributes are those of the span before), and what is stored is the sender's own
bytes: nothing is lost in translation, and nothing is encoded twice.
"""

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "draftgate.wire"
_Field = descriptor_pb2.FieldDescriptorProto
_BYTES, _STRING, _FIXED64 = _Field.TYPE_BYTES, _Field.TYPE_STRING, _Field.TYPE_FIXED64
_INT32, _UINT32, _FIXED32 = _Field.TYPE_INT32, _Field.TYPE_UINT32, _Field.TYPE_FIXED32

# By message: field number, name, type (a message by its name), repeated.
_MESSAGES: Final[dict[str, tuple[tuple[int, str, int | str, bool], ...]]] = {
    "Status": ((2, "message", _STRING, False), (3, "code", _INT32, False)),
    "Span": (
        (1, "trace_id", _BYTES, False),
        (2, "span_id", _BYTES, False),
        (3, "trace_state", _STRING, False),
        (4, "parent_span_id", _BYTES, False),
        (5, "name", _STRING, False),
        (6, "kind", _INT32, False),
        (7, "start_time_unix_nano", _FIXED64, False),
        (8, "end_time_unix_nano", _FIXED64, False),
        (9, "attributes", _BYTES, True),
        (10, "dropped_attributes_count", _UINT32, False),
        (11, "events", _BYTES, True),
        (12, "dropped_events_count", _UINT32, False),
        (13, "links", _BYTES, True),
        (14, "dropped_links_count", _UINT32, False),
        (15, "status", "Status", False),
        (16, "flags", _FIXED32, False),
    ),
    "Scope": ((1, "name", _STRING, False), (2, "version", _STRING, False)),
    "ScopeSpans": ((1, "scope", "Scope", False), (2, "spans", "Span", True)),
    "Resource": ((1, "attributes", _BYTES, True),),
    "ResourceSpans": ((1, "resource", "Resource", False), (2, "scope_spans", "ScopeSpans", True)),
    "ExportTraceServiceRequest": ((1, "resource_spans", "ResourceSpans", True),),
}


def _build() -> dict[str, Any]:  # Any: classes that protobuf makes
    file = descriptor_pb2.FileDescriptorProto(
        name="draftgate/wire.proto", package=_PACKAGE, syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for number, name, kind, repeated in fields:
            field = message.field.add(
                number=number,
                name=name,
                label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
            )
            if isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_classes = _build()
Resource = _classes["Resource"]
Span = _classes["Span"]
ExportTraceServiceRequest = _classes["ExportTraceServiceRequest"]
