"""Generations to spans and back: the only code that maps record fields to attribute names."""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from collector.contract import attributes as a
from collector.contract.conservation import broken_laws
from collector.contract.fields import SPEC_PREFIX, Fields, unflatten
from collector.contract.finish import failure_of
from collector.contract.forms import READERS, Reader, UnreadableError
from collector.contract.proposed import PROPOSED
from collector.contract.records import (
    Arm,
    AttributeValue,
    Content,
    DeviceUse,
    Generation,
    Span,
    SpanStatus,
    Speculation,
    StepTimes,
)
from collector.contract.wire_field import Form, WireField, wire_fields

OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
"""Values of `gen_ai.operation.name` that make a span a generation."""


class Decoded(NamedTuple):
    """A span's generation, field by field."""

    fields: Fields
    """As from `flatten`, with the quality flags."""
    content: Mapping[str, Any]  # Any: each value has its field's own type
    """Keyed by the field names of `Content`."""
    problems: tuple[str, ...]
    """`type:<attribute>` for each attribute of the wrong type; its field is absent."""

    @property
    def generation(self) -> Generation:
        """The generation as a record."""
        return unflatten(self.fields, Content(**self.content) if self.content else None)


_FIELDS: Final = {
    record: wire_fields(record)
    for record in (Generation, Speculation, StepTimes, DeviceUse, Content)
}


class FactKind(Enum):
    """The kind of a fact."""

    FIELD = "field"
    CONTENT = "content"
    DIM = "dim"
    PROBLEM = "problem"
    """The attribute has the wrong type; the fact's name is the problem's."""


_FIELD = FactKind.FIELD  # an enum's members are slow to look up


class Fact(NamedTuple):
    """The meaning of one attribute, on any span."""

    kind: FactKind
    name: str
    value: Any  # Any: each value has its field's own type


class Reading(NamedTuple):
    """How to read an attribute of the contract."""

    kind: FactKind
    field: str
    form: Form
    reader: Reader


def _readings(
    kind: FactKind, fields: Mapping[str, WireField], prefix: str = "", *, of_resource: bool = False
) -> dict[str, Reading]:
    return {
        wire.attribute: Reading(kind, prefix + name, wire.form, READERS[wire.form])
        for name, wire in fields.items()
        if wire.of_resource is of_resource
    }


_ATTRIBUTES: Mapping[str, Reading] = {
    **_readings(FactKind.FIELD, _FIELDS[Generation]),
    **_readings(FactKind.FIELD, _FIELDS[Speculation], SPEC_PREFIX),
    **_readings(FactKind.CONTENT, _FIELDS[Content]),
}
_ATTRIBUTES = {
    **_ATTRIBUTES,
    a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS_FLAT: _ATTRIBUTES[
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS
    ],
    **{proposed: _ATTRIBUTES[ours] for ours, proposed in PROPOSED.items()},
}
_OF_A_DEPLOYMENT: Final = (
    a.DRAFTGATE_ROLLOUT,
    a.DRAFTGATE_ARM,
    a.DRAFTGATE_COHORT,
    a.DRAFTGATE_ROUTE,
    a.DRAFTGATE_LAUNCH,
)
"""Span attributes that a deployment of one arm may set once, on its resource."""
_RESOURCE_ATTRIBUTES: Mapping[str, Reading] = {
    **_readings(FactKind.FIELD, _FIELDS[Generation], of_resource=True),
    **{name: _ATTRIBUTES[name] for name in _OF_A_DEPLOYMENT},
}
_COUNT_ATTRIBUTES = {
    wire.attribute
    for wire in _FIELDS[Speculation].values()
    if wire.form in (Form.INTEGER, Form.INTEGERS)
} | set(PROPOSED.values())


def encode(generation: Generation) -> Span:
    """Return the generation as a span; absent fields set no attribute."""
    attributes = dict(_attributes_of(generation))
    attributes |= {a.DRAFTGATE_DIM_PREFIX + name: value for name, value in generation.dims.items()}
    if generation.speculation is not None:
        attributes |= _attributes_of(generation.speculation)
        if generation.speculation.step_times is not None:
            attributes |= _attributes_of(generation.speculation.step_times)
    if generation.device is not None:
        attributes |= _attributes_of(generation.device)
    if generation.content is not None:
        attributes |= _attributes_of(generation.content)
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
        resource=dict(_attributes_of(generation, of_resource=True)),
    )


def span_name(generation: Generation) -> str:
    """Return `{operation} {model}`, or only the operation if no model is known."""
    return f"{generation.operation} {generation.request_model or ''}".rstrip()


def is_generation(span: Span) -> bool:
    """Return whether the span is one request to a model, in Draftgate's dialect."""
    return names_operation(span.attributes.get(a.GEN_AI_OPERATION_NAME))


def names_operation(value: AttributeValue) -> bool:
    """Return whether the value names an operation that makes a span a generation."""
    # An attribute may be a list or a mapping, which is not hashable.
    return isinstance(value, str) and value in OPERATIONS


def decode(span: Span) -> Decoded:
    """Return the generation in the span, flagged with every law it breaks.

    Rollout, arm, cohort, route, launch and dimensions may be set on the resource; a prompt's repeat
    defaults to 0.

    An attribute of the wrong type (or a number that is not finite, or a name too long for an index
    or with control characters) leaves its field absent and is named in `problems`. A span without
    `error.type` gets the type `finish_…` if a finish reason names a failure, or with error status
    `_OTHER`, the convention's value for unknown.
    """
    facts: list[Fact | None] = [*interpret_resource(span.resource)]
    facts += [interpret(name, value) for name, value in span.attributes.items()]
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
    """Return the meaning of a span's attribute; None if the contract does not know it."""
    if attribute.startswith(a.DRAFTGATE_DIM_PREFIX):
        if isinstance(value, str):
            return Fact(FactKind.DIM, attribute.removeprefix(a.DRAFTGATE_DIM_PREFIX), value)
        return Fact(FactKind.PROBLEM, f"type:{attribute}", None)
    return _interpret(attribute, value, _ATTRIBUTES)


def interpret_resource(resource: Mapping[str, AttributeValue]) -> tuple[Fact, ...]:
    """Return what a resource's attributes mean for its generations; a span's own attributes win."""
    facts = [
        _interpret(name, resource.get(name), _RESOURCE_ATTRIBUTES) for name in _RESOURCE_ATTRIBUTES
    ]
    facts += [
        interpret(name, value)
        for name, value in resource.items()
        if name.startswith(a.DRAFTGATE_DIM_PREFIX)
    ]
    return tuple(fact for fact in facts if fact is not None)


def assemble(fields: Fields, facts: Iterable[Fact], *, failed: bool) -> Decoded:
    """Return the generation made of these facts; `fields` contains ids and times.

    Single source of truth for combining facts: `decode` reads them from a span, the collector
    directly from the wire.
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
    if f"type:{a.DRAFTGATE_REPEAT}" not in problems:
        default_repeat(fields)
    default_error_type(fields, failed=failed)
    flags = broken_laws(fields)
    if problems:
        flags = (*map(_flag, problems), *flags)
    if flags:
        fields["quality"] = flags
    return Decoded(fields, content, tuple(problems))


def default_repeat(fields: Fields) -> None:
    """Set `repeat` to 0 if there is a prompt id and no repeat."""
    if "prompt_id" in fields:
        fields.setdefault("repeat", 0)


def default_error_type(fields: Fields, *, failed: bool) -> None:
    """Set `error_type`, if it is absent, if the finish reason or status says it failed."""
    if "error_type" in fields:
        return
    of_finish = failure_of(fields.get("finish_reasons", ()))
    if of_finish is not None or failed:
        fields["error_type"] = of_finish or "_OTHER"


def reading(attribute: str) -> Reading | None:
    """Return how to read an attribute of a span; None if the contract does not name it.

    Dimensions have only a common prefix; `interpret` reads them.
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
    record: Generation | Speculation | StepTimes | DeviceUse | Content, *, of_resource: bool = False
) -> Iterator[tuple[str, AttributeValue]]:
    for name, wire in _FIELDS[type(record)].items():
        value = getattr(record, name)
        if value is not None and wire.of_resource is of_resource:
            yield wire.attribute, value.value if isinstance(value, Arm) else value
