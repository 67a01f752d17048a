"""Find the character at which JSON in a text breaks."""

import json
from collections.abc import Iterator, Sequence

from collector.contract import ScoredSpan
from evals.evaluators.answers import unfenced
from evals.evaluators.json_schema import SchemaFault

_DECODER = json.JSONDecoder()
_SPACE = " \t\n\r"
_MAX_CHARACTERS = 100_000
"""Limit on the text that is searched for a value."""


def fault_in(text: str, fault: SchemaFault | None = None) -> ScoredSpan | None:
    """Return the span from the place at which the JSON breaks to the text's end.

    Without a schema's fault, that is the first character that is no JSON. With one the text must be
    JSON: the place is the value that is wrong, or the end of the object that lacks a member. None
    if the place cannot be found.
    """
    inner = unfenced(text)
    before = text.find(inner)
    at = _first_error(inner) if fault is None else _place(inner, fault)
    if at is None or before + at > len(text):
        return None
    return ScoredSpan(start=before + at, end=len(text), support=0.0)


def _first_error(text: str) -> int | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as exc:
        # Of a string without an end, the parser gives the beginning.
        return len(text) if exc.msg.startswith("Unterminated string") else exc.pos
    except (ValueError, RecursionError):
        pass
    return None


def _place(text: str, fault: SchemaFault) -> int | None:
    if len(text) > _MAX_CHARACTERS:
        return None
    start = _value_at(text, fault.path)
    return None if start is None else _end(text, start) if fault.missing else start


def _value_at(text: str, path: Sequence[str | int]) -> int | None:
    """Return where the value at the path begins; of repeated members the last counts."""
    at: int | None = _skip(text, 0)
    for step in path:
        if at is None:
            return None
        if isinstance(step, str):
            at = dict(_members(text, at)).get(step)
        else:
            at = dict(enumerate(_items(text, at))).get(step)
    return at


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield each member's name and the start of its value, of the object at the position."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        yield name, start
        at = _next(text, start)


def _items(text: str, at: int) -> Iterator[int]:
    """Yield the start of each value, of the list at the position."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _next(text, at)


def _next(text: str, start: int) -> int:
    """Return where the next member or item begins, after the value at the position."""
    at = _skip(text, _end(text, start))
    return _skip(text, at + 1) if text[at] == "," else at


def _end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
