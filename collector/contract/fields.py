"""Generations as flat fields: one mapping in which an absent field has no key.

A span is decoded into fields, and fields are stored; a `Generation` record with its 50 slots is
only created on request. Names are those of `Generation`, and those of `Speculation` with the prefix
`spec_`.
"""

from collections.abc import Mapping
from dataclasses import fields as fields_of
from operator import attrgetter
from typing import Any, Final

from collector.contract.records import SPAN_ONLY, Content, Generation, Speculation
from collector.contract.wire_field import WireField, wire_fields

Fields = dict[str, Any]  # Any: each value has its field's own type
SPEC_PREFIX: Final = "spec_"

_SPECULATION: Final = tuple(
    field.name for field in fields_of(Speculation) if field.metadata != SPAN_ONLY
)
_GENERATION: Final = tuple(
    field.name
    for field in fields_of(Generation)
    if field.name not in ("speculation", "content") and field.metadata != SPAN_ONLY
)
NAMES: Final = (*_GENERATION, *(SPEC_PREFIX + name for name in _SPECULATION))
"""The names of all flat fields."""
_SPEC_NAMES: Final = {SPEC_PREFIX + name: name for name in _SPECULATION}

WIRE: Final[Mapping[str, WireField]] = {
    **wire_fields(Generation),
    **{SPEC_PREFIX + name: wire for name, wire in wire_fields(Speculation).items()},
}
"""The flat fields that are span or resource attributes."""

_generation_of = attrgetter(*_GENERATION)
_speculation_of = attrgetter(*_SPECULATION)


def flatten(generation: Generation) -> Fields:
    """Return the generation's fields without its content; unknown or empty ones have no key."""
    values = _generation_of(generation)
    if generation.speculation is not None:
        values += _speculation_of(generation.speculation)
    # Omit empty dims and quality; zero and False are values.
    return {
        name: value
        for name, value in zip(NAMES, values, strict=False)
        if value is not None and (value or name not in ("dims", "quality"))
    }


def unflatten(fields: Mapping[str, Any], content: Content | None = None) -> Generation:
    """Return the generation that the fields describe."""
    plain: Fields = {}
    speculation: Fields = {}
    for name, value in fields.items():
        spec_name = _SPEC_NAMES.get(name)
        if spec_name is None:
            plain[name] = value
        else:
            speculation[spec_name] = value
    return Generation(
        **plain,
        speculation=Speculation(**speculation) if speculation else None,
        content=content,
    )
