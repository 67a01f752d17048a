"""Declaration of a record field's attribute and storage properties, next to its type."""

from collections.abc import Mapping
from dataclasses import field, fields
from enum import Enum
from typing import Any, Final, NamedTuple

_KEY: Final = "wire"


class Form(Enum):
    """The type that an attribute's value must have."""

    STRING = "string"
    NAME = "name"
    """A string that is a valid name, so that an index can contain it."""
    INTEGER = "integer"
    """A 64-bit integer."""
    NUMBER = "number"
    """A finite number."""
    BOOLEAN = "boolean"
    STRINGS = "strings"
    INTEGERS = "integers"
    ARM = "arm"
    PASSAGES = "passages"
    MESSAGES = "messages"


class NotNegative(Enum):
    """The flag group for negative values of a field that must not be negative."""

    TIME = "times"
    TOKENS = "tokens"
    COUNTS = "counts"
    """A negative value keeps all of a generation's speculation counts out of every ratio."""


class WireField(NamedTuple):
    """One field: its attribute and its properties."""

    attribute: str
    form: Form
    not_negative: NotNegative | None = None
    few_values: bool = False
    """Whether a day's rows have few distinct values, so that dictionary encoding pays off."""
    of_engine: bool = False
    """Whether an engine span adds it to the client's generation."""
    of_resource: bool = False
    """Whether it is an attribute of the resource instead of the span."""


def on_wire(  # Any: dataclasses use it as the field's default
    attribute: str,
    form: Form,
    *,
    default: Any = None,
    not_negative: NotNegative | None = None,
    few_values: bool = False,
    of_engine: bool = False,
    of_resource: bool = False,
) -> Any:
    """Declare a record's field; it has the default if the attribute is absent."""
    wire = WireField(attribute, form, not_negative, few_values, of_engine, of_resource)
    return field(default=default, metadata={_KEY: wire})


def wire_fields(record: type) -> Mapping[str, WireField]:
    """Return the fields of a record that are attributes, by name, in order."""
    return {one.name: one.metadata[_KEY] for one in fields(record) if _KEY in one.metadata}
