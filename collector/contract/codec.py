"""Generation to span and back: the only code that maps record fields to attribute names."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from collector.contract import attributes as a
from collector.contract.conservation import violations
from collector.contract.records import (
    Arm,
    AttributeValue,
    Content,
    Generation,
    Span,
    SpanStatus,
    Speculation,
)

OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
"""Values of `gen_ai.operation.name` that make a span a generation."""

_INT64 = range(-(2**63), 2**63)


class Decoded(NamedTuple):
    """A generation, and the attributes of its span that could not be read."""

    generation: Generation
    problems: tuple[str, ...]
    """`type:<attribute>` for each attribute of the wrong type; its field is absent."""


class _UnreadableError(Exception):
    """An attribute's value is not of the type that the contract names."""


def _string(value: AttributeValue) -> str:
    if not isinstance(value, str):
        raise _UnreadableError
    return value


def _integer(value: AttributeValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT64:
        raise _UnreadableError
    return value


def _number(value: AttributeValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _UnreadableError
    return float(value)


def _boolean(value: AttributeValue) -> bool:
    if not isinstance(value, bool):
        raise _UnreadableError
    return value


def _strings(value: AttributeValue) -> tuple[str, ...]:
    if not isinstance(value, tuple):
        raise _UnreadableError
    return tuple(_string(item) for item in value)


def _integers(value: AttributeValue) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise _UnreadableError
    return tuple(_integer(item) for item in value)


def _arm(value: AttributeValue) -> Arm:
    try:
        return Arm(_string(value))
    except ValueError as exc:
        raise _UnreadableError from exc


def _passages(value: AttributeValue) -> tuple[str, ...]:
    """Read `draftgate.context`: a JSON list in a string, or a plain string array."""
    if isinstance(value, str):
        try:
            loaded = json.loads(value)
        except ValueError as exc:
            raise _UnreadableError from exc
        value = tuple(loaded) if isinstance(loaded, list) else None
    return _strings(value)


Reader = Callable[[AttributeValue], Any]  # Any: the field's own type

_GENERATION: dict[str, tuple[str, Reader]] = {
    "operation": (a.GEN_AI_OPERATION_NAME, _string),
    "provider": (a.GEN_AI_PROVIDER_NAME, _string),
    "request_model": (a.GEN_AI_REQUEST_MODEL, _string),
    "response_model": (a.GEN_AI_RESPONSE_MODEL, _string),
    "max_tokens": (a.GEN_AI_REQUEST_MAX_TOKENS, _integer),
    "temperature": (a.GEN_AI_REQUEST_TEMPERATURE, _number),
    "top_p": (a.GEN_AI_REQUEST_TOP_P, _number),
    "top_k": (a.GEN_AI_REQUEST_TOP_K, _integer),
    "seed": (a.GEN_AI_REQUEST_SEED, _integer),
    "stop_sequences": (a.GEN_AI_REQUEST_STOP_SEQUENCES, _strings),
    "response_id": (a.GEN_AI_RESPONSE_ID, _string),
    "finish_reasons": (a.GEN_AI_RESPONSE_FINISH_REASONS, _strings),
    "error_type": (a.ERROR_TYPE, _string),
    "input_tokens": (a.GEN_AI_USAGE_INPUT_TOKENS, _integer),
    "output_tokens": (a.GEN_AI_USAGE_OUTPUT_TOKENS, _integer),
    "cached_input_tokens": (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, _integer),
    "ttft_s": (a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, _number),
    "server_ttft_s": (a.GEN_AI_SERVER_TIME_TO_FIRST_TOKEN, _number),
    "tpot_s": (a.GEN_AI_SERVER_TIME_PER_OUTPUT_TOKEN, _number),
    "queue_s": (a.GEN_AI_LATENCY_TIME_IN_QUEUE, _number),
    "stream_chunks": (a.DRAFTGATE_STREAM_CHUNKS, _integer),
    "stream_max_gap_s": (a.DRAFTGATE_STREAM_MAX_GAP, _number),
    "stream_p99_gap_s": (a.DRAFTGATE_STREAM_P99_GAP, _number),
    "rollout": (a.DRAFTGATE_ROLLOUT, _string),
    "arm": (a.DRAFTGATE_ARM, _arm),
    "cohort": (a.DRAFTGATE_COHORT, _string),
    "prompt_id": (a.DRAFTGATE_PROMPT_ID, _string),
    "repeat": (a.DRAFTGATE_REPEAT, _integer),
    "route": (a.DRAFTGATE_ROUTE, _string),
    "retries": (a.DRAFTGATE_RETRIES, _integer),
    "fallback": (a.DRAFTGATE_FALLBACK, _boolean),
    "mirrored": (a.DRAFTGATE_MIRRORED, _boolean),
    "concurrency": (a.DRAFTGATE_CONCURRENCY, _integer),
}
_SPECULATION: dict[str, tuple[str, Reader]] = {
    "method": (a.SPEC_DECODE_METHOD, _string),
    "draft_model": (a.SPEC_DECODE_DRAFT_MODEL, _string),
    "num_speculative_tokens": (a.SPEC_DECODE_NUM_SPECULATIVE_TOKENS, _integer),
    "lossless": (a.SPEC_DECODE_LOSSLESS, _boolean),
    "source": (a.SPEC_DECODE_SOURCE, _string),
    "steps": (a.SPEC_DECODE_NUM_STEPS, _integer),
    "draft_tokens": (a.SPEC_DECODE_NUM_DRAFT_TOKENS, _integer),
    "accepted_tokens": (a.SPEC_DECODE_NUM_ACCEPTED_TOKENS, _integer),
    "draft_tokens_per_pos": (a.SPEC_DECODE_NUM_DRAFT_TOKENS_PER_POS, _integers),
    "accepted_tokens_per_pos": (a.SPEC_DECODE_NUM_ACCEPTED_TOKENS_PER_POS, _integers),
    "acceptance_histogram": (a.SPEC_DECODE_ACCEPTANCE_HISTOGRAM, _integers),
}
_CONTENT: dict[str, tuple[str, Reader]] = {
    "input_messages": (a.GEN_AI_INPUT_MESSAGES, _string),
    "output_messages": (a.GEN_AI_OUTPUT_MESSAGES, _string),
    "context": (a.DRAFTGATE_CONTEXT, _passages),
    "reference": (a.DRAFTGATE_REFERENCE, _string),
    "output_schema": (a.DRAFTGATE_OUTPUT_SCHEMA, _string),
}
_RESOURCE: dict[str, tuple[str, Reader]] = {
    "service_name": (a.SERVICE_NAME, _string),
    "service_version": (a.SERVICE_VERSION, _string),
    "fingerprint": (a.DRAFTGATE_FINGERPRINT, _string),
}


def encode(generation: Generation) -> Span:
    """Return the span that carries the generation; absent fields set no attribute."""
    attributes = dict(_attributes_of(generation, _GENERATION))
    attributes |= {a.DRAFTGATE_DIM_PREFIX + name: value for name, value in generation.dims.items()}
    if generation.speculation is not None:
        attributes |= _attributes_of(generation.speculation, _SPECULATION)
    if generation.content is not None:
        attributes |= _attributes_of(generation.content, _CONTENT)
        if generation.content.context is not None:
            attributes[a.DRAFTGATE_CONTEXT] = json.dumps(generation.content.context)
    return Span(
        trace_id=generation.trace_id,
        span_id=generation.span_id,
        name=span_name(generation),
        kind="client",
        start_unix_ns=generation.start_unix_ns,
        end_unix_ns=generation.end_unix_ns,
        status=SpanStatus.ERROR if generation.error_type is not None else SpanStatus.UNSET,
        attributes=attributes,
        resource=dict(_attributes_of(generation, _RESOURCE)),
    )


def span_name(generation: Generation) -> str:
    """Return `{operation} {model}`, or the operation alone where no model is known."""
    return f"{generation.operation} {generation.request_model or ''}".rstrip()


def is_generation(span: Span) -> bool:
    """Say whether the span is one request answered by a model, in our own dialect."""
    operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
    # Any attribute may be a list or a mapping, which no set can be asked for.
    return isinstance(operation, str) and operation in OPERATIONS


def decode(span: Span) -> Decoded:
    """Return the generation that the span carries, flagged with every law it breaks.

    An attribute of the wrong type (or a number that is not finite) leaves its field absent and is
    named in `problems`. A span with error status and no `error.type` gets the type `_OTHER`, the
    convention's value for unknown.
    """
    problems: list[str] = []
    values = _read(span.attributes, _GENERATION, problems)
    values |= _read(span.resource, _RESOURCE, problems)
    if span.status is SpanStatus.ERROR:
        values.setdefault("error_type", "_OTHER")
    speculation = _read(span.attributes, _SPECULATION, problems)
    content = _read(span.attributes, _CONTENT, problems)
    generation = Generation(
        trace_id=span.trace_id,
        span_id=span.span_id,
        start_unix_ns=span.start_unix_ns,
        end_unix_ns=span.end_unix_ns,
        dims=_dims(span.attributes, problems),
        speculation=Speculation(**speculation) if speculation else None,
        content=Content(**content) if content else None,
        **values,
    )
    flags = tuple(_flag(problem) for problem in problems) + violations(generation)
    if flags:
        generation = replace(generation, quality=flags)
    return Decoded(generation, tuple(problems))


def _flag(problem: str) -> str:
    """Return the quality flag of a problem; an unreadable count makes all counts unusable."""
    count_names = {
        name for name, reader in _SPECULATION.values() if reader in (_integer, _integers)
    }
    return f"counts:{problem}" if problem.removeprefix("type:") in count_names else problem


def _attributes_of(
    record: object, table: Mapping[str, tuple[str, Reader]]
) -> Iterator[tuple[str, AttributeValue]]:
    for field_name, (attribute, _) in table.items():
        value = getattr(record, field_name)
        if value is not None:
            yield attribute, value.value if isinstance(value, Arm) else value


def _read(
    source: Mapping[str, AttributeValue],
    table: Mapping[str, tuple[str, Reader]],
    problems: list[str],
) -> dict[str, Any]:  # Any: each value has its field's own type
    values = {}
    for field_name, (attribute, reader) in table.items():
        if source.get(attribute) is None:
            continue
        try:
            values[field_name] = reader(source[attribute])
        except _UnreadableError:
            problems.append(f"type:{attribute}")
    return values


def _dims(source: Mapping[str, AttributeValue], problems: list[str]) -> dict[str, str]:
    dims = {}
    for name, value in source.items():
        if not name.startswith(a.DRAFTGATE_DIM_PREFIX):
            continue
        if isinstance(value, str):
            dims[name.removeprefix(a.DRAFTGATE_DIM_PREFIX)] = value
        else:
            problems.append(f"type:{name}")
    return dims
