"""Generation to span and back: the only code that maps record fields to attribute names."""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from collector.contract import attributes as a
from collector.contract.conservation import broken_laws
from collector.contract.fields import SPEC_PREFIX, Fields, unflatten
from collector.contract.forms import READERS, Form, Reader, UnreadableError
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


_GENERATION: dict[str, tuple[str, Form]] = {
    "operation": (a.GEN_AI_OPERATION_NAME, Form.STRING),
    "provider": (a.GEN_AI_PROVIDER_NAME, Form.STRING),
    "request_model": (a.GEN_AI_REQUEST_MODEL, Form.STRING),
    "response_model": (a.GEN_AI_RESPONSE_MODEL, Form.STRING),
    "max_tokens": (a.GEN_AI_REQUEST_MAX_TOKENS, Form.INTEGER),
    "temperature": (a.GEN_AI_REQUEST_TEMPERATURE, Form.NUMBER),
    "top_p": (a.GEN_AI_REQUEST_TOP_P, Form.NUMBER),
    "top_k": (a.GEN_AI_REQUEST_TOP_K, Form.INTEGER),
    "seed": (a.GEN_AI_REQUEST_SEED, Form.INTEGER),
    "stop_sequences": (a.GEN_AI_REQUEST_STOP_SEQUENCES, Form.STRINGS),
    "response_id": (a.GEN_AI_RESPONSE_ID, Form.STRING),
    "finish_reasons": (a.GEN_AI_RESPONSE_FINISH_REASONS, Form.STRINGS),
    "error_type": (a.ERROR_TYPE, Form.STRING),
    "input_tokens": (a.GEN_AI_USAGE_INPUT_TOKENS, Form.INTEGER),
    "output_tokens": (a.GEN_AI_USAGE_OUTPUT_TOKENS, Form.INTEGER),
    "cached_input_tokens": (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, Form.INTEGER),
    "ttft_s": (a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, Form.NUMBER),
    "server_ttft_s": (a.GEN_AI_SERVER_TIME_TO_FIRST_TOKEN, Form.NUMBER),
    "tpot_s": (a.GEN_AI_SERVER_TIME_PER_OUTPUT_TOKEN, Form.NUMBER),
    "queue_s": (a.GEN_AI_LATENCY_TIME_IN_QUEUE, Form.NUMBER),
    "prefill_s": (a.GEN_AI_LATENCY_TIME_IN_MODEL_PREFILL, Form.NUMBER),
    "decode_s": (a.GEN_AI_LATENCY_TIME_IN_MODEL_DECODE, Form.NUMBER),
    "stream_chunks": (a.DRAFTGATE_STREAM_CHUNKS, Form.INTEGER),
    "stream_max_gap_s": (a.DRAFTGATE_STREAM_MAX_GAP, Form.NUMBER),
    "stream_p99_gap_s": (a.DRAFTGATE_STREAM_P99_GAP, Form.NUMBER),
    "rollout": (a.DRAFTGATE_ROLLOUT, Form.NAME),
    "arm": (a.DRAFTGATE_ARM, Form.ARM),
    "cohort": (a.DRAFTGATE_COHORT, Form.NAME),
    "prompt_id": (a.DRAFTGATE_PROMPT_ID, Form.NAME),
    "repeat": (a.DRAFTGATE_REPEAT, Form.INTEGER),
    "route": (a.DRAFTGATE_ROUTE, Form.STRING),
    "retries": (a.DRAFTGATE_RETRIES, Form.INTEGER),
    "fallback": (a.DRAFTGATE_FALLBACK, Form.BOOLEAN),
    "mirrored": (a.DRAFTGATE_MIRRORED, Form.BOOLEAN),
    "concurrency": (a.DRAFTGATE_CONCURRENCY, Form.INTEGER),
    "client_lag_s": (a.DRAFTGATE_CLIENT_LAG, Form.NUMBER),
}
_SPECULATION: dict[str, tuple[str, Form]] = {
    "method": (a.SPEC_DECODE_METHOD, Form.STRING),
    "draft_model": (a.SPEC_DECODE_DRAFT_MODEL, Form.STRING),
    "num_speculative_tokens": (a.SPEC_DECODE_NUM_SPECULATIVE_TOKENS, Form.INTEGER),
    "lossless": (a.SPEC_DECODE_LOSSLESS, Form.BOOLEAN),
    "source": (a.SPEC_DECODE_SOURCE, Form.STRING),
    "steps": (a.SPEC_DECODE_NUM_STEPS, Form.INTEGER),
    "draft_tokens": (a.SPEC_DECODE_NUM_DRAFT_TOKENS, Form.INTEGER),
    "accepted_tokens": (a.SPEC_DECODE_NUM_ACCEPTED_TOKENS, Form.INTEGER),
    "draft_tokens_per_pos": (a.SPEC_DECODE_NUM_DRAFT_TOKENS_PER_POS, Form.INTEGERS),
    "accepted_tokens_per_pos": (a.SPEC_DECODE_NUM_ACCEPTED_TOKENS_PER_POS, Form.INTEGERS),
    "acceptance_histogram": (a.SPEC_DECODE_ACCEPTANCE_HISTOGRAM, Form.INTEGERS),
}
_STEP_TIMES: dict[str, tuple[str, Form]] = {
    "draft_s": (a.SPEC_DECODE_TIME_IN_DRAFT, Form.NUMBER),
    "verify_s": (a.SPEC_DECODE_TIME_IN_VERIFY, Form.NUMBER),
    "overhead_s": (a.SPEC_DECODE_TIME_IN_OVERHEAD, Form.NUMBER),
}
"""Written and not read; so are those of the device."""
_DEVICE: dict[str, tuple[str, Form]] = {
    "weight_bytes": (a.DRAFTGATE_MEMORY_WEIGHTS, Form.INTEGER),
    "draft_weight_bytes": (a.DRAFTGATE_MEMORY_DRAFT_WEIGHTS, Form.INTEGER),
    "cache_bytes": (a.DRAFTGATE_MEMORY_CACHE, Form.INTEGER),
    "draft_cache_bytes": (a.DRAFTGATE_MEMORY_DRAFT_CACHE, Form.INTEGER),
    "gpu_utilization_pct": (a.DRAFTGATE_GPU_UTILIZATION, Form.NUMBER),
    "gpu_power_w": (a.DRAFTGATE_GPU_POWER, Form.NUMBER),
    "gpu_clock_mhz": (a.DRAFTGATE_GPU_CLOCK, Form.NUMBER),
}
_CONTENT: dict[str, tuple[str, Form]] = {
    "input_messages": (a.GEN_AI_INPUT_MESSAGES, Form.MESSAGES),
    "output_messages": (a.GEN_AI_OUTPUT_MESSAGES, Form.MESSAGES),
    "context": (a.DRAFTGATE_CONTEXT, Form.PASSAGES),
    "reference": (a.DRAFTGATE_REFERENCE, Form.STRING),
    "output_schema": (a.DRAFTGATE_OUTPUT_SCHEMA, Form.STRING),
}
_RESOURCE: dict[str, tuple[str, Form]] = {
    "service_name": (a.SERVICE_NAME, Form.STRING),
    "service_version": (a.SERVICE_VERSION, Form.STRING),
    "fingerprint": (a.DRAFTGATE_FINGERPRINT, Form.STRING),
    "workload": (a.DRAFTGATE_WORKLOAD, Form.STRING),
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


class Reading(NamedTuple):
    """How an attribute of the contract is read."""

    kind: FactKind
    field: str
    form: Form
    reader: Reader


def _readings(
    kind: FactKind, table: Mapping[str, tuple[str, Form]], prefix: str = ""
) -> dict[str, Reading]:
    return {
        name: Reading(kind, prefix + field, form, READERS[form])
        for field, (name, form) in table.items()
    }


_ATTRIBUTES: Mapping[str, Reading] = {
    **_readings(FactKind.FIELD, _GENERATION),
    **_readings(FactKind.FIELD, _SPECULATION, SPEC_PREFIX),
    **_readings(FactKind.CONTENT, _CONTENT),
}
_RESOURCE_ATTRIBUTES: Mapping[str, Reading] = _readings(FactKind.FIELD, _RESOURCE)
_COUNT_ATTRIBUTES = {
    name for name, form in _SPECULATION.values() if form in (Form.INTEGER, Form.INTEGERS)
}


def encode(generation: Generation) -> Span:
    """Return the span that carries the generation; absent fields set no attribute."""
    attributes = dict(_attributes_of(generation, _GENERATION))
    attributes |= {a.DRAFTGATE_DIM_PREFIX + name: value for name, value in generation.dims.items()}
    if generation.speculation is not None:
        attributes |= _attributes_of(generation.speculation, _SPECULATION)
        if generation.speculation.step_times is not None:
            attributes |= _attributes_of(generation.speculation.step_times, _STEP_TIMES)
    if generation.device is not None:
        attributes |= _attributes_of(generation.device, _DEVICE)
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
    return names_operation(span.attributes.get(a.GEN_AI_OPERATION_NAME))


def names_operation(value: AttributeValue) -> bool:
    """Say whether the value is that of an operation that makes a span a generation."""
    # Any attribute may be a list or a mapping, which no set can be asked for.
    return isinstance(value, str) and value in OPERATIONS


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


def reading(attribute: str) -> Reading | None:
    """Return how an attribute of a span is read; None where the contract does not name it.

    Dimensions are named by a prefix alone, and read by `interpret`.
    """
    return _ATTRIBUTES.get(attribute)


def _interpret(
    attribute: str, value: AttributeValue, table: Mapping[str, "Reading"]
) -> Fact | None:
    known = table.get(attribute)
    if known is None or value is None:
        return None
    try:
        return Fact(known.kind, known.field, known.reader(value))
    except UnreadableError:
        return Fact(FactKind.PROBLEM, f"type:{attribute}", None)


def _flag(problem: str) -> str:
    """Return the quality flag of a problem; an unreadable count makes all counts unusable."""
    return f"counts:{problem}" if problem.removeprefix("type:") in _COUNT_ATTRIBUTES else problem


def _attributes_of(
    record: object, table: Mapping[str, tuple[str, Form]]
) -> Iterator[tuple[str, AttributeValue]]:
    for field_name, (attribute, _) in table.items():
        value = getattr(record, field_name)
        if value is not None:
            yield attribute, value.value if isinstance(value, Arm) else value
