"""What attributes are to the store, known again by their bytes.

Most attributes of a span are those of the span before (model, provider, cohort, k, …), and what an
attribute says does not depend on its span: so it is parsed, told from text and interpreted once.
"""

from typing import Final, NamedTuple

from collector.contract import AttributeValue, Fact, interpret
from collector.dialects import is_text
from collector.otlp import read_attribute

_MOST: Final = 2048
_LONGEST: Final = 128  # bytes: longer ones are texts, which do not come twice


class AttributeFacts(NamedTuple):
    """One attribute."""

    key: str
    value: AttributeValue
    is_text: bool
    fact: Fact | None
    """What it says by the contract; None where the contract does not know it."""


_known: dict[bytes, AttributeFacts] = {}


def of(raw: bytes) -> AttributeFacts:
    """Return what a `KeyValue` message is; raises `OtlpError` where it is none."""
    known = _known.get(raw)
    if known is not None:
        return known
    key, value = read_attribute(raw)
    facts = AttributeFacts(key, value, is_text(key), interpret(key, value))
    if len(raw) <= _LONGEST:
        if len(_known) >= _MOST:
            _known.clear()
        _known[raw] = facts
    return facts
