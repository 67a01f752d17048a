"""How a record's field stands on a span and in the store: said once, beside its type."""

from collections.abc import Mapping
from dataclasses import field, fields
from enum import Enum
from typing import Any, Final, NamedTuple

_KEY: Final = "wire"


class Form(Enum):
    """The type that an attribute's value must have."""

    STRING = "string"
    NAME = "name"
    """A string that an index can hold."""
    INTEGER = "integer"
    """Of 64 bits."""
    NUMBER = "number"
    """Finite."""
    BOOLEAN = "boolean"
    STRINGS = "strings"
    INTEGERS = "integers"
    ARM = "arm"
    PASSAGES = "passages"
    MESSAGES = "messages"


class NotNegative(Enum):
    """The group of a number that is never negative: what a negative one is flagged as."""

    TIME = "times"
    TOKENS = "tokens"
    COUNTS = "counts"
    """A negative one keeps all of a generation's speculation counts out of every ratio."""


class WireField(NamedTuple):
    """One field: its attribute, and all that is derived from it."""

    attribute: str
    form: Form
    not_negative: NotNegative | None = None
    few_values: bool = False
    """Whether a day's rows hold few different values, so that a dictionary stores them best."""
    of_engine: bool = False
    """Whether the engine's own span adds it to its client's generation."""
    of_resource: bool = False
    """Whether it is an attribute of the resource, and not of the span."""


def on_wire(  # Any: dataclasses take it for the field's default
    attribute: str,
    form: Form,
    *,
    default: Any = None,
    not_negative: NotNegative | None = None,
    few_values: bool = False,
    of_engine: bool = False,
    of_resource: bool = False,
) -> Any:
    """Declare a record's field, absent unless the attribute is there."""
    wire = WireField(attribute, form, not_negative, few_values, of_engine, of_resource)
    return field(default=default, metadata={_KEY: wire})


def wire_fields(record: type) -> Mapping[str, WireField]:
    """Return the fields of a record that are attributes, by name, in their order."""
    return {one.name: one.metadata[_KEY] for one in fields(record) if _KEY in one.metadata}
