"""What attributes are, known again by their bytes or by their keys.

Most attributes of a span are those of the span before (model, provider, cohort, k, …), and what an
attribute says does not depend on its span: so it is parsed, told from text and interpreted once.
"""

from enum import IntEnum
from typing import Any, Final, NamedTuple

from collector.contract import AttributeValue, Fact, FactKind, interpret
from collector.contract.attributes import DRAFTGATE_DIM_PREFIX
from collector.contract.codec import reading
from collector.contract.wire_field import Form
from collector.dialects import SYSTEM, is_text
from collector.otlp.values import read_attribute

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
    """What else it says by the contract; its content apart."""


class NativeForm(IntEnum):
    """The forms that the compiled reader knows; the numbers are those of `_span_reader.c`."""

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
"""Forms of content that any string has."""
_known: Final[dict[bytes, AttributeFacts]] = {}


def read(raw: bytes) -> AttributeFacts:
    """Return what a `KeyValue` message is; raises `OtlpError` where it is none."""
    return _known.get(raw) or _read(raw)


def _read(raw: bytes) -> AttributeFacts:
    key, value = read_attribute(raw)
    fact = interpret(key, value)
    if fact is not None and fact.kind is FactKind.CONTENT:
        fact = None  # it is read where it is asked for, of the text that is kept
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
    """Return the form that values of this key have for the compiled reader, and their field.

    `OTHER` is always right: the reader then asks `read`.
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
