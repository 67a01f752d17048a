"""Redaction of sensitive parts of text, such as e-mail addresses and keys.

RE2 matches in time linear in the text's length, so neither a pattern nor a text can stall the
collector. The number of matches checked one by one is limited by the text's length, too; beyond the
limit every match is replaced without its checksum test, and JSON of many small parts is replaced
whole.
"""

import hashlib
import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import re2
from pyarrow import compute

from collector.contract import AttributeValue

_CODING = ("utf-8", "surrogatepass")  # JSON can escape a lone surrogate

_APART = "\n"  # separates joined texts: not a word character
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

_LEAST_TOKEN = 10_000
_MARKER = re.compile(rb"\[redacted:[a-z][a-z0-9_]{0,39}:[0-9]{5}\]")
_MATCHES = 64
_BYTES_A_MATCH = 256
"""Matches of a pattern that are replaced one by one: this many, and one more for so many bytes."""
_BYTES_A_KERNEL = 32_768
"""Text of this length takes about as long to replace match by match as a kernel to compile."""
_DENSE = "[redacted:dense]"
"""Replaces JSON that has more parts to check than its length allows."""
_BYTES_A_PART = 6
"""Least length of JSON for each of its parts, beyond a thousand of them."""
_OBJECT = 5
"""The parts that an object counts as, by the time that it takes."""
_BLOCK = 16
"""Parts of JSON that are checked together."""

Span = tuple[int, int]
Narrow = Callable[[bytes], Iterable[Span]]
"""Returns the parts of a match to replace: often none, if a checksum must hold."""


class Pattern(NamedTuple):
    """One kind of sensitive text."""

    name: str
    """A match is replaced by `[redacted:name]`, with a key by `[redacted:name:12345]`."""
    expression: str
    """RE2 syntax."""
    narrow: Narrow | None = None
    canonical: Callable[[bytes], bytes] = bytes
    """Maps a match to the spelling that its token is made from."""


class _Compiled(NamedTuple):
    pattern: Pattern
    expression: Any  # Any: the library is untyped
    key: bytes | None

    @property
    def unkeyed(self) -> bytes:
        return f"[redacted:{self.pattern.name}]".encode()

    def replacement(self, value: bytes) -> bytes:
        if self.key is None:
            return self.unkeyed
        name = self.pattern.name.encode()
        canonical = name + b":" + self.pattern.canonical(value)
        digest = hashlib.blake2b(canonical, key=self.key, digest_size=8).digest()
        token = _LEAST_TOKEN + int.from_bytes(digest) % (10 * _LEAST_TOKEN - _LEAST_TOKEN)
        return b"[redacted:%b:%d]" % (name, token)


class _DenseError(Exception):
    """JSON has more parts to check than its length allows."""


class _PartBudget:
    """How many more parts of one JSON document may be checked one by one."""

    def __init__(self, size: int) -> None:
        self._left = 1024 + size // 256

    def spend(self) -> bool:
        """Count a part and return True; raises `_DenseError` if the budget is used up."""
        self._left -= 1
        if self._left < 0:
            raise _DenseError
        return True


class Redactor:
    """Replaces the matches of its patterns; thread-safe.

    With a key, the replacement holds a number made from the value and the key: equal values get
    equal numbers, different values almost always different ones. It is so short that many values
    share it, and without the key none can be tried.
    """

    def __init__(self, patterns: Sequence[Pattern], key: bytes | None = None) -> None:
        """Compile the patterns; raises `re2.error` for one that RE2 rejects.

        `key` has 16 to 64 bytes.
        """
        self._patterns = [_Compiled(p, compiled(p.expression), key) for p in patterns]
        # Most text contains no match: one pass with all patterns shows it.
        either = "|".join(f"(?:{pattern.expression})" for pattern in patterns)
        self._any = compiled(either) if patterns else None
        self._any_or_exponent = compiled(f"{either}|{_EXPONENT}") if patterns else None
        # Texts cannot be joined for one pass if a pattern anchors at a text's start or end.
        self._joinable = not _ANCHORS.search(either)

    def keyed(self, key: bytes | None) -> "Redactor":
        """Return a redactor with these patterns and this key, or none."""
        return Redactor([one.pattern for one in self._patterns], key)

    def value(self, value: AttributeValue) -> AttributeValue:
        """Return the value with all text in it redacted, including keys of mappings."""
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

    def _maybe_json(self, text: str, budget: _PartBudget | None = None) -> str:
        """Redact the text; if it is JSON, redact its values so that it stays JSON.

        In raw JSON an escape could join a match (the n of a line break before an address) or hide
        one (an escaped @).
        """
        if not _is_json(text):
            return self.text(text)
        if self.is_clean((text,)):
            return text
        try:
            _check_parts(text, text.count("[") + text.count("{"))
            document = json.loads(text)
            if not self._may_match(document):
                return text
            _check_parts(text, text.count(",") + text.count("[") + _OBJECT * text.count("{"))
            redacted = self._json(document, budget or _PartBudget(len(text)))
            return text if redacted == document else _dump(redacted)
        except _DenseError:
            if budget is not None:
                raise
            return _DENSE
        except (ValueError, RecursionError):
            return self.text(text)

    def is_clean(self, texts: Sequence[str]) -> bool:
        """Return whether `value` certainly leaves all texts unchanged, in one pass over them.

        JSON is searched as text with its common escapes decoded. That is not enough if a backslash
        is escaped, a character is escaped by number, or a number has an exponent: then False.
        """
        if self._any_or_exponent is None:
            return True
        if not self._joinable:
            return False
        joined = _APART.join(texts)
        if "\\" in joined:  # checked for all at once: most texts have no escape
            plain = [_unescaped(text) if _is_json(text) else text for text in texts]
            if None in plain:
                return False
            joined = _APART.join(text for text in plain if text is not None)
        return self._any_or_exponent.search(joined.encode(*_CODING)) is None

    def _may_match(self, document: Any) -> bool:  # Any: a JSON value
        """Return whether anything in the document may match, in one pass over all its texts."""
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

    def _json(self, value: Any, budget: _PartBudget) -> Any:  # Any: a JSON value
        if isinstance(value, list):
            budget.spend()
            blocks = (value[at : at + _BLOCK] for at in range(0, len(value), _BLOCK))
            return [item for block in blocks for item in self._block(block, budget)]
        if isinstance(value, dict):
            if self._is_clean_block((*value, *value.values())):
                return value
            return self._mapping(
                (key, self._json(item, budget)) for key, item in value.items() if budget.spend()
            )
        budget.spend()
        return self._maybe_json(value, budget) if isinstance(value, str) else self._number(value)

    def _block(self, items: list[Any], budget: _PartBudget) -> list[Any]:  # Any: JSON values
        if self._is_clean_block(items):
            return items
        return [self._json(item, budget) for item in items]

    def _is_clean_block(self, items: Sequence[Any]) -> bool:  # Any: JSON values
        """Return whether the items are certainly unchanged; only for few items, none nested."""
        if len(items) > 2 * _BLOCK or any(isinstance(item, dict | list) for item in items):
            return False
        return self._joinable and not self._may_match(list(items))

    def _mapping(self, items: Iterable[tuple[str, Any]]) -> dict[str, Any]:  # Any: the values
        result: dict[str, Any] = {}
        numbers: Counter[str] = Counter()
        for key, value in items:
            shown = unique = self.text(key)
            while unique in result:  # keep keys distinct that are equal after redaction
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


def _check_parts(text: str, parts: int) -> None:
    """Raise `_DenseError` if JSON of so many parts takes more time than its length allows."""
    if parts > 1024 + len(text) // _BYTES_A_PART:
        raise _DenseError


def _is_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _unescaped(text: str) -> str | None:
    """Return JSON with its common escapes decoded, or None if it has others."""
    if "\\" not in text:  # checked first: searching one character is much faster than two
        return text
    if "\\\\" in text or "\\u" in text:
        return None
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text


def _is_nested(text: str) -> bool:
    """Return whether the text is itself JSON with escapes, which may hide a match."""
    return "\\" in text and _is_json(text)


def _dump(document: Any) -> str:  # Any: a JSON value
    text = json.dumps(document, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate can only be stored as an escape
        return json.dumps(document)
    return text


def compiled(expression: str) -> Any:  # Any: the library is untyped
    """Compile the expression; raises `re2.error` if RE2 rejects it."""
    options = re2.Options()
    options.log_errors = False  # otherwise the library writes the expression to standard error
    return re2.compile(expression, options=options)


def _replace(pattern: _Compiled, text: bytes) -> bytes:
    parts: list[bytes] = []
    done, left = 0, _MATCHES + len(text) // _BYTES_A_MATCH
    markers = [marker.span() for marker in _MARKER.finditer(text)]
    for match in pattern.expression.finditer(text):
        left -= 1
        if left < 0:  # too many matches: replace the rest at once, without `narrow` and the key
            at = max(done, match.start())
            parts += (text[done:at], _replace_all(pattern, text[at:]))
            return b"".join(parts)
        if _is_inside(match.span(), markers):
            continue
        for start, end in _narrowed(pattern, text, match.span()):
            parts += (text[done:start], pattern.replacement(text[start:end]))
            done = end
    return text if not parts else b"".join((*parts, text[done:]))


def _is_inside(span: Span, markers: Sequence[Span]) -> bool:
    """Return whether the span is part of a marker, which another pattern left."""
    at = bisect_right(markers, span[0], key=itemgetter(0)) - 1
    return at >= 0 and span[1] <= markers[at][1]


def _narrowed(pattern: _Compiled, text: bytes, span: Span) -> Iterable[Span]:
    start, end = span
    narrow = pattern.pattern.narrow
    if narrow is None:
        # Ignore empty matches.
        return (span,) if end > start else ()
    return ((start + a, start + b) for a, b in narrow(text[start:end]))


def _replace_all(pattern: _Compiled, text: bytes) -> bytes:
    """Replace every match.

    Long texts by Arrow's RE2 kernel, which creates no Python object per match, but compiles the
    expression each time.
    """
    if len(text) < _BYTES_A_KERNEL:
        return bytes(pattern.expression.sub(pattern.unkeyed, text))
    ends = np.array([0, len(text)], np.int64)
    array = pa.Array.from_buffers(
        pa.large_string(), 1, [None, pa.py_buffer(ends), pa.py_buffer(text)]
    )
    replaced = compute.replace_substring_regex(
        array, pattern=pattern.pattern.expression, replacement=pattern.unkeyed.decode()
    )
    return bytes(replaced[0].as_buffer())
