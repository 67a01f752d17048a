"""One attempt of one arm as the contract's record of a generation, and as OTLP."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.contract import (
    Arm,
    AttributeValue,
    Content,
    Generation,
    SpanStatus,
    Speculation,
    encode,
)
from collector.contract.attributes import SCHEMA_URL
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.json_fields import count, number, text
from engine_adapter.engines.observation import Observed
from engine_adapter.router.decision import Decision
from engine_adapter.router.settings import Upstream
from engine_adapter.router.trace_context import TraceContext

if TYPE_CHECKING:  # protobuf offers the type to checkers alone
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

_OPERATIONS: Final = {"/chat/completions": "chat", "/completions": "text_completion"}
GENERATION_PATHS: Final = frozenset(_OPERATIONS)
"""The routes whose requests a rollout is about; every other is the baseline's."""

_COUNTS: Final = ("max_completion_tokens", "max_tokens", "top_k", "seed")


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


def generation_of(
    around: Circumstances,
    upstream: Upstream,
    provider: str,
    seen: Observed,
    answer: Answer,
    retries: int,
) -> Generation:
    """Return the record; what nobody said or measured stays absent."""
    start_unix_ns = seen.start_unix_ns
    asked, decision = around.document, around.decision
    said = {name: count(asked, name) for name in _COUNTS if name in asked}
    return Generation(
        trace_id=around.place.trace_id,
        span_id=around.place.span_id,
        start_unix_ns=start_unix_ns,
        end_unix_ns=start_unix_ns + round(seen.duration_s * 1e9),
        operation=_OPERATIONS[around.path],
        provider=provider,
        request_model=text(asked, "model"),
        response_model=answer.model,
        max_tokens=said.get("max_completion_tokens") or said.get("max_tokens"),
        temperature=number(asked, "temperature") if "temperature" in asked else None,
        top_p=number(asked, "top_p") if "top_p" in asked else None,
        top_k=said.get("top_k"),
        seed=said.get("seed"),
        response_id=answer.response_id,
        finish_reasons=(answer.finish_reason,) if answer.finish_reason is not None else None,
        error_type=seen.error.error_type if seen.error is not None else None,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cached_input_tokens=answer.cached_input_tokens,
        ttft_s=seen.ttft_s,
        server_ttft_s=answer.server_ttft_s,
        tpot_s=seen.tpot_s(answer.output_tokens),
        queue_s=answer.queue_s,
        prefill_s=answer.prefill_s,
        decode_s=answer.decode_s,
        stream_chunks=len(seen.chunk_times_s) or None,
        stream_max_gap_s=seen.max_gap_s,
        stream_p99_gap_s=seen.p99_gap_s,
        rollout=decision.rollout,
        arm=around.arm,
        cohort=decision.cohort,
        route=around.arm.value,
        prompt_id=around.pair_id,
        repeat=0 if around.pair_id is not None else None,
        retries=retries,
        fallback=around.fallback,
        mirrored=around.linked is not None,
        concurrency=seen.concurrency,
        speculation=answer.speculation if answer.speculation != Speculation() else None,
        service_name="draftgate",
        service_version=_version(),
        fingerprint=upstream.fingerprint,
    )


def with_content(
    generation: Generation, document: Mapping[str, Any], answer: Answer
) -> Generation:  # Any: the client's JSON
    """Return the record with what was asked and answered; of images and tools, that they are."""
    messages = document.get("messages")
    asked = messages if isinstance(messages, list) else [{"content": document.get("prompt")}]
    inputs = [_message(message) for message in asked if isinstance(message, Mapping)]
    said = _message({"role": "assistant", "content": answer.text}) | {
        "finish_reason": answer.finish_reason or "error"
    }
    content = Content(
        input_messages=json.dumps(inputs),
        output_messages=json.dumps([said]) if answer.text or answer.finish_reason else None,
    )
    return replace(generation, content=content)


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


def _message(message: Mapping[str, Any]) -> dict[str, object]:  # Any: the client's JSON
    """Return a message in the shape of `gen_ai.input.messages`."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    return {
        "role": text(message, "role") or "user",
        "parts": [
            {"type": "text", "content": words}
            if (words := part if isinstance(part, str) else text(part, "text")) is not None
            else {"type": text(part, "type") or "unknown"}
            for part in parts
            if part is not None
        ],
    }


@cache
def _version() -> str:
    try:
        return version("draftgate")
    except PackageNotFoundError:
        return "unknown"
