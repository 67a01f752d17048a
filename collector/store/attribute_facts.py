"""What attributes are to the store, known again by their bytes.

Most attributes of a span are those of the span before (model, provider, cohort, k, …), and what an
attribute says does not depend on its span: so it is parsed, told from text and interpreted once.
"""

from typing import Any, Final, NamedTuple

from collector.contract import AttributeValue, Fact, FactKind, interpret
from collector.dialects import is_text
from collector.otlp import read_attribute

_MOST: Final = 2048
_LONGEST: Final = 128  # bytes: longer ones are texts, which do not come twice


class AttributeFacts(NamedTuple):
    """One attribute."""

    key: str
    value: AttributeValue
    is_text: bool
    field: str | None
    """The field of a generation that it is, by the contract."""
    field_value: Any  # Any: of the field's own type
    fact: Fact | None
    """What else it says by the contract."""


KNOWN: Final[dict[bytes, AttributeFacts]] = {}
"""Attributes that were read lately, by their `KeyValue` message."""


def read(raw: bytes) -> AttributeFacts:
    """Return what a `KeyValue` message is, and remember it; raises `OtlpError` where it is none."""
    key, value = read_attribute(raw)
    fact = interpret(key, value)
    if fact is not None and fact.kind is FactKind.FIELD:
        facts = AttributeFacts(key, value, is_text(key), fact.name, fact.value, None)
    else:
        facts = AttributeFacts(key, value, is_text(key), None, None, fact)
    if len(raw) <= _LONGEST:
        if len(KNOWN) >= _MOST:
            KNOWN.clear()
        KNOWN[raw] = facts
    return facts
