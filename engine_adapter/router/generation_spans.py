"""Convert one attempt of one arm to the contract's `Generation` and to OTLP."""

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
)
from collector.contract.attributes import SCHEMA_URL
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.recording import generation_of
from engine_adapter.recording.span import span_of
from engine_adapter.router.decision import Decision
from engine_adapter.router.settings import Upstream
from engine_adapter.router.trace_context import TraceContext

if TYPE_CHECKING:  # protobuf provides this type only to type checkers
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptContext:
    """The request, decision and trace position of an attempt."""

    path: str
    document: Mapping[str, Any]  # Any: the client's JSON
    decision: Decision
    arm: Arm
    place: TraceContext
    pair_id: str | None = None
    """Shared by the two arms' generations of one mirrored request."""
    linked: TraceContext | None = None
    """For a mirrored generation, the one that the user got."""
    fallback: bool = False
    """Whether the baseline answers because the candidate failed."""
    input_characters: int | None = None
    """Characters of the request's texts; `None` if it has none."""
    since_s: float | None = None
    """When the failed request to the candidate began (`time.perf_counter`); the user's wait counts
    from then."""


def generation_of_attempt(
    context: AttemptContext, upstream: Upstream, provider: str, seen: ObservedAnswer, retries: int
) -> Generation:
    """Return the record of an attempt; values that are unknown stay absent."""
    decision, place = context.decision, context.place
    said = generation_of(
        seen,
        context.document,
        trace_id=place.trace_id,
        span_id=place.span_id,
        provider=provider,
        path=context.path,
    )
    return replace(
        said,
        rollout=decision.rollout,
        arm=context.arm,
        cohort=decision.cohort,
        conversation_id=decision.session,
        dims={} if said.request_model is None else {"model": said.request_model},
        route=context.arm.value,
        prompt_id=context.pair_id,
        repeat=0 if context.pair_id is not None else None,
        retries=retries,
        fallback=context.fallback,
        mirrored=context.linked is not None,
        fingerprint=upstream.fingerprint,
        engine_version=upstream.engine_version,
        launch=upstream.launch,
        price=upstream.price,
    )


def export_request(
    generation: Generation, place: TraceContext, linked: TraceContext | None
) -> bytes:
    """Return the generation as an OTLP export of one span.

    Concatenated exports form one export: protobuf joins their repeated fields.
    """
    span = span_of(generation)
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
    """Add the attributes in place: building messages apart and copying them takes twice as long."""
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
    """Replace lone surrogates, which JSON can hold and UTF-8 cannot encode."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
