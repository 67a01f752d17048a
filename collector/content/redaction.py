"""Replacing what should not be stored inside text, such as e-mail addresses and keys.

Matching is RE2's: its time grows with the text's length, never with the square or worse, so that
neither a pattern nor a text can be made that stalls the collector.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import re2

from collector.contract import AttributeValue

_CODING = ("utf-8", "surrogatepass")  # JSON can spell half of a surrogate pair

_APART = "\n"  # as the end of a text, no part of a word
_EXPONENT = "[0-9][eE][+-]?[0-9]"
_ESCAPES = (
    ("\\n", "\n"),
    ('\\"', '"'),
    ("\\t", "\t"),
    ("\\r", "\r"),
    ("\\/", "/"),
    ("\\b", "\b"),
    ("\\f", "\f"),
)
_ANCHORS = re.compile(r"[\^$]|\\[Az]")

Span = tuple[int, int]
Narrow = Callable[[bytes], Iterable[Span]]
"""Given a match, the parts of it to replace: where a checksum must hold, often none."""


class Pattern(NamedTuple):
    """One kind of thing to replace."""

    name: str
    """Shown in its place, as `[redacted:name]`."""
    expression: str
    """RE2 syntax."""
    narrow: Narrow | None = None


class _Compiled(NamedTuple):
    expression: Any  # Any: the library is untyped
    replacement: bytes
    narrow: Narrow | None


class Redactor:
    """Replaces what its patterns match; safe for threads."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        """Compile the patterns; raises `re2.error` for one that RE2 does not read."""
        self._patterns = [
            _Compiled(compiled(p.expression), f"[redacted:{p.name}]".encode(), p.narrow)
            for p in patterns
        ]
        # Most text holds nothing to replace, and one pass shows it.
        either = "|".join(f"(?:{pattern.expression})" for pattern in patterns)
        self._any = compiled(either) if patterns else None
        self._any_or_exponent = compiled(f"{either}|{_EXPONENT}") if patterns else None
        # An anchor holds at the ends of each text, not at those of all texts together.
        self._joinable = not _ANCHORS.search(either)

    def value(self, value: AttributeValue) -> AttributeValue:
        """Return the value with every text in it redacted; the keys of mappings too."""
        if isinstance(value, str):
            return self._maybe_json(value)
        if isinstance(value, bytes):
            return self._bytes(value)
        if isinstance(value, tuple):
            return tuple(self.value(item) for item in value)
        if isinstance(value, Mapping):
            return self._mapping((key, self.value(item)) for key, item in value.items())
        return self._number(value)  # type: ignore[no-any-return]  # a scalar

    def text(self, text: str) -> str:
        """Return the text redacted."""
        encoded = text.encode(*_CODING)
        redacted = self._bytes(encoded)
        return text if redacted is encoded else redacted.decode(*_CODING)

    def _maybe_json(self, text: str) -> str:
        """Redact inside JSON, where the text is such, so that it stays JSON.

        On the text itself an escape such as the n of a line break would count as part of an
        address, and one such as that of an @ would hide it.
        """
        if not _is_json(text):
            return self.text(text)
        if self.is_clean((text,)):
            return text
        try:
            document = json.loads(text)
            if not self._may_hold(document):
                return text
            redacted = self._json(document)
            return text if redacted == document else _dump(redacted)
        except (ValueError, RecursionError):
            return self.text(text)

    def is_clean(self, texts: Sequence[str]) -> bool:
        """Say whether `value` surely leaves each of the texts as it is: in one pass, read as sent.

        With its common escapes put back, JSON is its own texts in one, unless an escape is itself
        escaped or spells a character by number, or a number is written with an exponent.
        """
        if self._any_or_exponent is None:
            return True
        if not self._joinable:
            return False
        joined = _APART.join(texts)
        if "\\" in joined:  # asked of all at once: most texts have no escape
            plain = [_unescaped(text) if _is_json(text) else text for text in texts]
            if None in plain:
                return False
            joined = _APART.join(text for text in plain if text is not None)
        return self._any_or_exponent.search(joined.encode(*_CODING)) is None

    def _may_hold(self, document: Any) -> bool:  # Any: a JSON value
        """Say whether anything in the document may be replaced, from all its texts in one pass."""
        texts: list[str] = []
        waiting = [document]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                texts += value
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
            else:
                texts.append(str(value))
                if _is_nested(value):
                    return True
        if self._any is None:
            return False
        return not self._joinable or (
            self._any.search(_APART.join(texts).encode(*_CODING)) is not None
        )

    def _json(self, value: Any) -> Any:  # Any: a JSON value
        if isinstance(value, str):
            return self._maybe_json(value)
        if isinstance(value, list):
            return [self._json(item) for item in value]
        if isinstance(value, dict):
            return self._mapping((key, self._json(item)) for key, item in value.items())
        return self._number(value)

    def _mapping(self, items: Iterable[tuple[str, Any]]) -> dict[str, Any]:  # Any: the values
        result: dict[str, Any] = {}
        for key, value in items:
            shown = unique = self.text(key)
            number = 1
            while unique in result:  # two keys that are redacted alike must not become one
                number += 1
                unique = f"{shown} {number}"
            result[unique] = value
        return result

    def _number(self, value: Any) -> Any:  # Any: a number, a flag or nothing
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            return value
        shown = str(value)
        redacted = self.text(shown)
        return value if redacted == shown else redacted

    def _bytes(self, text: bytes) -> bytes:
        if self._any is None or self._any.search(text) is None:
            return text
        for pattern in self._patterns:
            text = _replace(pattern, text)
        return text


def _is_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _unescaped(text: str) -> str | None:
    """Return JSON with its common escapes put back, or None where that would not be enough."""
    if "\\" not in text:  # asked first: looking for one character is far quicker than for two
        return text
    if "\\\\" in text or "\\u" in text:
        return None
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text


def _is_nested(value: Any) -> bool:  # Any: a JSON value
    """Say whether the value is JSON in a string, in which an escape may hide what is looked for."""
    return isinstance(value, str) and "\\" in value and _is_json(value)


def _dump(document: Any) -> str:  # Any: a JSON value
    text = json.dumps(document, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair can be stored as an escape alone
        return json.dumps(document)
    return text


def compiled(expression: str) -> Any:  # Any: the library is untyped
    """Return the expression compiled; raises `re2.error` where RE2 does not read it."""
    options = re2.Options()
    options.log_errors = False  # else the library writes the expression to standard error
    return re2.compile(expression, options=options)


def _replace(pattern: _Compiled, text: bytes) -> bytes:
    parts: list[bytes] = []
    done = 0
    for start, end in _found(pattern, text):
        parts += (text[done:start], pattern.replacement)
        done = end
    return text if not parts else b"".join((*parts, text[done:]))


def _found(pattern: _Compiled, text: bytes) -> Iterator[Span]:
    for match in pattern.expression.finditer(text):
        start, end = match.span()
        if pattern.narrow is None:
            if end > start:  # an expression that matches nothing everywhere replaces nothing
                yield start, end
        else:
            yield from ((start + a, start + b) for a, b in pattern.narrow(text[start:end]))
