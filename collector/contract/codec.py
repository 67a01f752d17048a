"""Generation to span and back: the only code that maps record fields to attribute names."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, cast

from collector.contract import attributes as a
from collector.contract.conservation import broken_laws
from collector.contract.fields import SPEC_PREFIX, Fields, unflatten
from collector.contract.names import is_name
from collector.contract.records import (
    Arm,
    AttributeValue,
    Content,
    Generation,
    Span,
    SpanStatus,
)

OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
"""Values of `gen_ai.operation.name` that make a span a generation."""


class Decoded(NamedTuple):
    """What a span says of a generation, field by field."""

    fields: Fields
    """As `flatten` gives them, with the quality flags."""
    content: Mapping[str, Any]  # Any: each value has its field's own type
    """By the names of `Content`."""
    problems: tuple[str, ...]
    """`type:<attribute>` for each attribute of the wrong type; its field is absent."""

    @property
    def generation(self) -> Generation:
        """The generation, as a record."""
        return unflatten(self.fields, Content(**self.content) if self.content else None)


class _UnreadableError(Exception):
    """An attribute's value is not of the type that the contract names, or is no name."""


def _string(value: AttributeValue) -> str:
    if not isinstance(value, str):
        raise _UnreadableError
    return value


def _name(value: AttributeValue) -> str:
    text = _string(value)
    if not is_name(text):
        raise _UnreadableError
    return text


def _integer(value: AttributeValue) -> int:
    # isinstance would let booleans in.
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise _UnreadableError
    return value


def _number(value: AttributeValue) -> float:
    if type(value) not in (float, int) or not math.isfinite(cast("float", value)):
        raise _UnreadableError
    return float(cast("float", value))


def _boolean(value: AttributeValue) -> bool:
    if not isinstance(value, bool):
        raise _UnreadableError
    return value


def _strings(value: AttributeValue) -> tuple[str, ...]:
    if not isinstance(value, tuple) or not {str}.issuperset(map(type, value)):
        raise _UnreadableError
    return cast("tuple[str, ...]", value)


def _integers(value: AttributeValue) -> tuple[int, ...]:
    if not isinstance(value, tuple) or not {int}.issuperset(map(type, value)):
        raise _UnreadableError
    numbers = cast("tuple[int, ...]", value)
    if numbers and not -(2**63) <= min(numbers) <= max(numbers) < 2**63:
        raise _UnreadableError
    return numbers


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
        except (ValueError, RecursionError) as exc:
            raise _UnreadableError from exc
        value = tuple(loaded) if isinstance(loaded, list) else None
    return _strings(value)


def _messages(value: AttributeValue) -> str:
    """Read messages: JSON in a string, or the list itself, which the convention allows too."""
    if isinstance(value, tuple):
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as exc:
            raise _UnreadableError from exc
    return _string(value)


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
    "prefill_s": (a.GEN_AI_LATENCY_TIME_IN_MODEL_PREFILL, _number),
    "decode_s": (a.GEN_AI_LATENCY_TIME_IN_MODEL_DECODE, _number),
    "stream_chunks": (a.DRAFTGATE_STREAM_CHUNKS, _integer),
    "stream_max_gap_s": (a.DRAFTGATE_STREAM_MAX_GAP, _number),
    "stream_p99_gap_s": (a.DRAFTGATE_STREAM_P99_GAP, _number),
    "rollout": (a.DRAFTGATE_ROLLOUT, _name),
    "arm": (a.DRAFTGATE_ARM, _arm),
    "cohort": (a.DRAFTGATE_COHORT, _name),
    "prompt_id": (a.DRAFTGATE_PROMPT_ID, _name),
    "repeat": (a.DRAFTGATE_REPEAT, _integer),
    "route": (a.DRAFTGATE_ROUTE, _string),
    "retries": (a.DRAFTGATE_RETRIES, _integer),
    "fallback": (a.DRAFTGATE_FALLBACK, _boolean),
    "mirrored": (a.DRAFTGATE_MIRRORED, _boolean),
    "concurrency": (a.DRAFTGATE_CONCURRENCY, _integer),
    "client_lag_s": (a.DRAFTGATE_CLIENT_LAG, _number),
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
    "input_messages": (a.GEN_AI_INPUT_MESSAGES, _messages),
    "output_messages": (a.GEN_AI_OUTPUT_MESSAGES, _messages),
    "context": (a.DRAFTGATE_CONTEXT, _passages),
    "reference": (a.DRAFTGATE_REFERENCE, _string),
    "output_schema": (a.DRAFTGATE_OUTPUT_SCHEMA, _string),
}
_RESOURCE: dict[str, tuple[str, Reader]] = {
    "service_name": (a.SERVICE_NAME, _string),
    "service_version": (a.SERVICE_VERSION, _string),
    "fingerprint": (a.DRAFTGATE_FINGERPRINT, _string),
}


class FactKind(Enum):
    """What an attribute turns out to be."""

    FIELD = "field"
    CONTENT = "content"
    DIM = "dim"
    PROBLEM = "problem"
    """It is of the wrong type; the fact's name is the problem's."""


_FIELD = FactKind.FIELD  # an enum's members are slow to look up


class Fact(NamedTuple):
    """What one attribute says, whichever span it stands on."""

    kind: FactKind
    name: str
    value: Any  # Any: each value has its field's own type


class _Known(NamedTuple):
    """How an attribute of the contract is read."""

    kind: FactKind
    field: str
    reader: Reader


def _known(
    kind: FactKind, table: Mapping[str, tuple[str, Reader]], prefix: str = ""
) -> dict[str, _Known]:
    return {name: _Known(kind, prefix + field, reader) for field, (name, reader) in table.items()}


_ATTRIBUTES: Mapping[str, _Known] = {
    **_known(FactKind.FIELD, _GENERATION),
    **_known(FactKind.FIELD, _SPECULATION, SPEC_PREFIX),
    **_known(FactKind.CONTENT, _CONTENT),
}
_RESOURCE_ATTRIBUTES: Mapping[str, _Known] = _known(FactKind.FIELD, _RESOURCE)
_COUNT_ATTRIBUTES = {
    name for name, reader in _SPECULATION.values() if reader in (_integer, _integers)
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
    return names_operation(span.attributes)


def names_operation(attributes: Mapping[str, AttributeValue]) -> bool:
    """Say whether a span's attributes name an operation that makes it a generation."""
    operation = attributes.get(a.GEN_AI_OPERATION_NAME)
    # Any attribute may be a list or a mapping, which no set can be asked for.
    return isinstance(operation, str) and operation in OPERATIONS


def decode(span: Span) -> Decoded:
    """Return the generation that the span carries, flagged with every law it breaks.

    An attribute of the wrong type (or a number that is not finite, or a name that no index can
    hold) leaves its field absent and is named in `problems`. A span with error status and no
    `error.type` gets the type `_OTHER`, the convention's value for unknown.
    """
    facts = [interpret(name, value) for name, value in span.attributes.items()]
    facts += interpret_resource(span.resource)
    fields: Fields = {
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "start_unix_ns": span.start_unix_ns,
        "end_unix_ns": span.end_unix_ns,
    }
    return assemble(
        fields, (f for f in facts if f is not None), failed=span.status is SpanStatus.ERROR
    )


def interpret(attribute: str, value: AttributeValue) -> Fact | None:
    """Return what a span's attribute says; None where the contract does not know it."""
    if attribute.startswith(a.DRAFTGATE_DIM_PREFIX):
        if isinstance(value, str):
            return Fact(FactKind.DIM, attribute.removeprefix(a.DRAFTGATE_DIM_PREFIX), value)
        return Fact(FactKind.PROBLEM, f"type:{attribute}", None)
    return _interpret(attribute, value, _ATTRIBUTES)


def interpret_resource(resource: Mapping[str, AttributeValue]) -> tuple[Fact, ...]:
    """Return what the attributes of a resource say of its generations."""
    facts = (
        _interpret(name, resource.get(name), _RESOURCE_ATTRIBUTES) for name in _RESOURCE_ATTRIBUTES
    )
    return tuple(fact for fact in facts if fact is not None)


def assemble(fields: Fields, facts: Iterable[Fact], *, failed: bool) -> Decoded:
    """Return the generation of which these are the facts; `fields` holds ids and times.

    Single source of truth for what facts come to: `decode` reads them off a span, the collector off
    the wire.
    """
    content: dict[str, Any] = {}
    dims: dict[str, str] = {}
    problems: list[str] = []
    for kind, name, value in facts:
        if kind is _FIELD:
            fields[name] = value
        elif kind is FactKind.CONTENT:
            content[name] = value
        elif kind is FactKind.DIM:
            dims[name] = value
        else:
            problems.append(name)
    if dims:
        fields["dims"] = dims
    fields.setdefault("operation", "chat")
    if failed:
        fields.setdefault("error_type", "_OTHER")
    flags = broken_laws(fields)
    if problems:
        flags = (*map(_flag, problems), *flags)
    if flags:
        fields["quality"] = flags
    return Decoded(fields, content, tuple(problems))


def _interpret(attribute: str, value: AttributeValue, table: Mapping[str, "_Known"]) -> Fact | None:
    known = table.get(attribute)
    if known is None or value is None:
        return None
    try:
        return Fact(known.kind, known.field, known.reader(value))
    except _UnreadableError:
        return Fact(FactKind.PROBLEM, f"type:{attribute}", None)


def _flag(problem: str) -> str:
    """Return the quality flag of a problem; an unreadable count makes all counts unusable."""
    return f"counts:{problem}" if problem.removeprefix("type:") in _COUNT_ATTRIBUTES else problem


def _attributes_of(
    record: object, table: Mapping[str, tuple[str, Reader]]
) -> Iterator[tuple[str, AttributeValue]]:
    for field_name, (attribute, _) in table.items():
        value = getattr(record, field_name)
        if value is not None:
            yield attribute, value.value if isinstance(value, Arm) else value
