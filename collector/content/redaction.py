"""Replacing what should not be stored inside text, such as e-mail addresses and keys.

Matching is RE2's: its time grows with the text's length, never with the square or worse, so that
neither a pattern nor a text can be made that stalls the collector. What is looked at match by match
is bounded by the text's length, too: beyond that, all of a form is replaced at once, whether or not
a checksum holds, and JSON of many small parts is replaced whole.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import re2
from pyarrow import compute

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

_DENSE = "[redacted:dense]"
"""In place of JSON in which more parts would have to be looked at than its length allows."""
_BLOCK = 16
"""Parts of JSON that are looked at together."""

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
    source: str
    expression: Any  # Any: the library is untyped
    replacement: bytes
    narrow: Narrow | None


class _DenseError(Exception):
    """JSON has more parts to look at than its length allows."""


class _Work:
    """How many parts of one JSON document are still looked at one by one."""

    def __init__(self, size: int) -> None:
        self._left = 1024 + size // 256

    def spend(self) -> bool:
        """Count a part and return True; raises `_DenseError` if it is one too many."""
        self._left -= 1
        if self._left < 0:
            raise _DenseError
        return True


class Redactor:
    """Replaces what its patterns match; safe for threads."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        """Compile the patterns; raises `re2.error` for one that RE2 does not read."""
        self._patterns = [
            _Compiled(
                p.expression, compiled(p.expression), f"[redacted:{p.name}]".encode(), p.narrow
            )
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

    def _maybe_json(self, text: str, work: _Work | None = None) -> str:
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
            redacted = self._json(document, work or _Work(len(text)))
            return text if redacted == document else _dump(redacted)
        except _DenseError:
            if work is not None:
                raise
            return _DENSE
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
            if isinstance(value, str):
                texts.append(value)
                if _is_nested(value):
                    return True
            elif isinstance(value, dict):
                texts += value
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
            else:
                texts.append(str(value))
        if self._any is None:
            return False
        return not self._joinable or (
            self._any.search(_APART.join(texts).encode(*_CODING)) is not None
        )

    def _json(self, value: Any, work: _Work) -> Any:  # Any: a JSON value
        if isinstance(value, list):
            work.spend()
            blocks = (value[at : at + _BLOCK] for at in range(0, len(value), _BLOCK))
            return [item for block in blocks for item in self._block(block, work)]
        if isinstance(value, dict):
            if self._is_clean_block((*value, *value.values())):
                return value
            return self._mapping(
                (key, self._json(item, work)) for key, item in value.items() if work.spend()
            )
        work.spend()
        return self._maybe_json(value, work) if isinstance(value, str) else self._number(value)

    def _block(self, items: list[Any], work: _Work) -> list[Any]:  # Any: JSON values
        if self._is_clean_block(items):
            return items
        return [self._json(item, work) for item in items]

    def _is_clean_block(self, items: Sequence[Any]) -> bool:  # Any: JSON values
        """Say whether the items are surely left as they are; asked of few that hold no others."""
        if len(items) > 2 * _BLOCK or any(isinstance(item, dict | list) for item in items):
            return False
        return self._joinable and not self._may_hold(list(items))

    def _mapping(self, items: Iterable[tuple[str, Any]]) -> dict[str, Any]:  # Any: the values
        result: dict[str, Any] = {}
        numbers: Counter[str] = Counter()
        for key, value in items:
            shown = unique = self.text(key)
            while unique in result:  # two keys that are redacted alike must not become one
                numbers[shown] += 1
                unique = f"{shown} {numbers[shown] + 1}"
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


def _is_nested(text: str) -> bool:
    """Say whether the text is JSON itself, in which an escape may hide what is looked for."""
    return "\\" in text and _is_json(text)


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
    done, left = 0, 16 + len(text) // 512
    for match in pattern.expression.finditer(text):
        left -= 1
        if left < 0:  # the rest at once, and by its form alone
            at = max(done, match.start())
            parts += (text[done:at], _replace_all(pattern, text[at:]))
            return b"".join(parts)
        for start, end in _narrowed(pattern, text, match.span()):
            parts += (text[done:start], pattern.replacement)
            done = end
    return text if not parts else b"".join((*parts, text[done:]))


def _narrowed(pattern: _Compiled, text: bytes, span: Span) -> Iterable[Span]:
    start, end = span
    if pattern.narrow is None:
        # An expression that matches nothing everywhere replaces nothing.
        return (span,) if end > start else ()
    return ((start + a, start + b) for a, b in pattern.narrow(text[start:end]))


def _replace_all(pattern: _Compiled, text: bytes) -> bytes:
    """Replace every match; Arrow's loop is RE2's own, where each match is no object of Python's."""
    ends = np.array([0, len(text)], np.int64)
    array = pa.Array.from_buffers(
        pa.large_string(), 1, [None, pa.py_buffer(ends), pa.py_buffer(text)]
    )
    replaced = compute.replace_substring_regex(
        array, pattern=pattern.source, replacement=pattern.replacement.decode()
    )
    return bytes(replaced[0].as_buffer())
