"""Where a value of a JSON body ends, and how much is in it, without building it."""

import re
from typing import Final

try:
    from collector.otlp._span_reader import extent as _extent
except ImportError:  # there was no compiler when this was installed

    def _extent(body: bytes, at: int, /) -> tuple[int, int, int]:
        return extent_slowly(body, at)


_SIGNS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|["{}\[\],]', re.DOTALL)


def extent(body: bytes, at: int) -> tuple[int, int, int]:
    """Return the offset after the text, list or object at `at`, its objects and lists, its commas.

    The offset is −1 if it does not end, or is another value. Brackets need not match in kind.
    """
    return _extent(body, at)


def extent_slowly(body: bytes, at: int, /) -> tuple[int, int, int]:
    """Do the same in Python, with the same result as the compiled function."""
    objects = commas = depth = 0
    for found in _SIGNS.finditer(body, at):
        sign = found[0]
        is_value = depth > 0 or (found.start() == at and sign != b",")
        if not is_value or sign == b'"':
            break
        objects += sign in b"{["
        commas += sign == b","
        depth += (sign in b"{[") - (sign in b"}]")
        if depth <= 0:
            return (found.end() if depth == 0 else -1), objects, commas
    return -1, objects, commas
