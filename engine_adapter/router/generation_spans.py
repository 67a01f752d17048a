"""One attempt of one arm as the contract's record of a generation, and as OTLP."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.contract import (
    Arm,
    AttributeValue,
    Generation,
    SpanStatus,
    encode,
)
from collector.contract.attributes import SCHEMA_URL
from engine_adapter.engines.observation import Observed
from engine_adapter.recording import generation_of
from engine_adapter.router.decision import Decision
from engine_adapter.router.settings import Upstream
from engine_adapter.router.trace_context import TraceContext

if TYPE_CHECKING:  # protobuf offers the type to checkers alone
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known of an attempt besides its answer."""

    path: str
    document: Mapping[str, Any]  # Any: the client's JSON
    decision: Decision
    arm: Arm
    place: TraceContext
    pair_id: str | None = None
    """What the two arms' generations of one mirrored request have in common."""
    linked: TraceContext | None = None
    """The generation that the user got, where this one is its mirror."""
    fallback: bool = False
    """Whether the baseline answers in the candidate's place."""
    since_s: float | None = None
    """When the candidate was asked in vain, by `time.perf_counter`: the user waits since then."""


def routed(
    around: Circumstances, upstream: Upstream, provider: str, seen: Observed, retries: int
) -> Generation:
    """Return the record of an attempt; what nobody said or measured stays absent."""
    decision, place = around.decision, around.place
    said = generation_of(
        seen,
        around.document,
        trace_id=place.trace_id,
        span_id=place.span_id,
        provider=provider,
        path=around.path,
    )
    return replace(
        said,
        rollout=decision.rollout,
        arm=around.arm,
        cohort=decision.cohort,
        route=around.arm.value,
        prompt_id=around.pair_id,
        repeat=0 if around.pair_id is not None else None,
        retries=retries,
        fallback=around.fallback,
        mirrored=around.linked is not None,
        fingerprint=upstream.fingerprint,
        launch=upstream.launch,
    )


def export_request(
    generation: Generation, place: TraceContext, linked: TraceContext | None
) -> bytes:
    """Return the generation as an OTLP export of one span.

    Exports that are written one behind the other are one export: protobuf joins their lists.
    """
    span = encode(generation)
    export = ExportTraceServiceRequest()
    of_resource = export.resource_spans.add()
    _fill(of_resource.resource.attributes, span.resource)
    wire = of_resource.scope_spans.add(schema_url=SCHEMA_URL).spans.add(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(place.parent_span_id or ""),
        name=_encodable(span.name),
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=span.start_unix_ns,
        end_time_unix_nano=span.end_unix_ns,
    )
    _fill(wire.attributes, span.attributes)
    if linked is not None:
        wire.links.add(
            trace_id=bytes.fromhex(linked.trace_id), span_id=bytes.fromhex(linked.span_id)
        )
    if span.status is SpanStatus.ERROR:
        wire.status.code = Status.STATUS_CODE_ERROR
        wire.status.message = generation.error_type or ""
    return bytes(export.SerializeToString())


def _fill(
    attributes: "RepeatedCompositeFieldContainer[KeyValue]", named: Mapping[str, AttributeValue]
) -> None:
    """Add the attributes in place: messages that are built apart and copied take twice as long."""
    for name, value in named.items():
        _set(attributes.add(key=name).value, value)


def _set(wire: AnyValue, value: AttributeValue) -> None:
    if isinstance(value, str):
        wire.string_value = _encodable(value)
    elif isinstance(value, bool):
        wire.bool_value = value
    elif isinstance(value, int):
        wire.int_value = value
    elif isinstance(value, float):
        wire.double_value = value
    elif isinstance(value, tuple):
        wire.array_value.SetInParent()
        for part in value:
            _set(wire.array_value.values.add(), part)
    else:
        raise TypeError(f"a generation's attribute is {type(value).__name__}")


def _encodable(value: str) -> str:
    """Return a text without halves of characters, which JSON can hold and UTF-8 cannot."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
