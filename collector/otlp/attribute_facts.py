"""Cache of interpreted attributes, keyed by their bytes.

Most attributes of a span equal those of the previous span (model, provider, cohort, k, …), and the
meaning of an attribute does not depend on its span. So each is parsed, classified and interpreted
only once.
"""

from enum import IntEnum
from typing import Any, Final, NamedTuple

from collector.contract import AttributeValue, Fact, FactKind, interpret
from collector.contract.attributes import DRAFTGATE_DIM_PREFIX
from collector.contract.codec import reading
from collector.contract.wire_field import Form
from collector.dialects import SYSTEM, is_text
from collector.protobuf.values import read_attribute

_MOST: Final = 2048
_LONGEST: Final = 128  # bytes: longer ones are texts, which seldom repeat


class AttributeFacts(NamedTuple):
    """One interpreted attribute."""

    key: str
    value: AttributeValue
    is_text: bool
    field: str | None
    """The generation field that it sets, by the contract."""
    field_value: Any  # Any: of the field's own type
    fact: Fact | None
    """Its fact by the contract, if that is neither a field nor content."""


class NativeForm(IntEnum):
    """The forms known to the compiled reader; the numbers must match `_span_reader.c`."""

    OTHER = 0
    IGNORED = 1
    TEXT = 2
    STRING = 3
    NAME = 4
    INTEGER = 5
    NUMBER = 6
    BOOLEAN = 7
    INTEGERS = 8
    SYSTEM = 9


_NATIVE: Final = {
    Form.STRING: NativeForm.STRING,
    Form.NAME: NativeForm.NAME,
    Form.INTEGER: NativeForm.INTEGER,
    Form.NUMBER: NativeForm.NUMBER,
    Form.BOOLEAN: NativeForm.BOOLEAN,
    Form.INTEGERS: NativeForm.INTEGERS,
}
_SAYS_NO_MORE: Final = frozenset({Form.STRING, Form.MESSAGES})
"""Content forms for which any string is valid."""
_known: Final[dict[bytes, AttributeFacts]] = {}


def read(raw: bytes) -> AttributeFacts:
    """Interpret a `KeyValue` message; raises `OtlpError` if it is malformed."""
    return _known.get(raw) or _read(raw)


def _read(raw: bytes) -> AttributeFacts:
    key, value = read_attribute(raw)
    fact = interpret(key, value)
    if fact is not None and fact.kind is FactKind.CONTENT:
        fact = None  # content is read on request, from the stored text
    if fact is not None and fact.kind is FactKind.FIELD:
        facts = AttributeFacts(key, value, is_text(key), fact.name, fact.value, None)
    else:
        facts = AttributeFacts(key, value, is_text(key), None, None, fact)
    if len(raw) <= _LONGEST:
        if len(_known) >= _MOST:
            _known.clear()
        _known[raw] = facts
    return facts


def describe(key: str) -> tuple[NativeForm, str | None]:
    """Return the form of this key's values for the compiled reader, and their field.

    `OTHER` is always correct: the reader then calls `read`.
    """
    known = reading(key)
    if key.startswith(DRAFTGATE_DIM_PREFIX):
        return (NativeForm.OTHER, None)
    if is_text(key):
        plain = known is None or (known.kind is FactKind.CONTENT and known.form in _SAYS_NO_MORE)
        return (NativeForm.TEXT if plain else NativeForm.OTHER, None)
    if known is None:
        return (NativeForm.SYSTEM if key == SYSTEM else NativeForm.IGNORED, None)
    if known.kind is FactKind.FIELD and known.form in _NATIVE:
        return (_NATIVE[known.form], known.field)
    return (NativeForm.OTHER, None)
