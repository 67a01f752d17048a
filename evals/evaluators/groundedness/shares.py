"""Find shares of a whole in words: `a quarter`, `half`, `2/3`, `one in four`."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from evals.evaluators.groundedness.lexicon import ORDINALS
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import Token

_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    name: number
    for ordinal, number in ORDINALS.items()
    if number <= 10
    for name in (ordinal, f"{ordinal}s")
}
"""Number of parts of a whole by the name of one."""
_PART_STEMS = frozenset(map(stem, _PARTS)) | frozenset(map(str, _PARTS.values()))
_WHICH = frozenset(["first", "second", "last", "next", "other", "latter", "former"])
_SUFFIX = re.compile(r"(?:st|nd|rd|th)\b")
_IN = frozenset(["in", "of"])
_EVERY = frozenset([stem("every"), stem("each")])
_MOST_COUNTED = 100
"""Above it, only one is a share of so many: `12 in 2019` is none."""


class Share(NamedTuple):
    """A share of a whole."""

    percent: float
    start: int
    end: int
    """The place behind its last word."""
    is_counted: bool
    """Whether it counts members of the whole, as in `one in four`; it needs no `of` behind it."""


def share_at(at: int, tokens: Sequence[Token], text: str) -> Share | None:
    """Return the share whose last number or part is at a place; `None` if there is none."""
    form = tokens[at].form
    if form.stem in _PART_STEMS and (found := _of_parts(at, tokens, text)):
        return found
    return _of_number(at, tokens, text) if form.is_number else None


def _of_parts(at: int, tokens: Sequence[Token], text: str) -> Share | None:
    """Return `a quarter`, `2 thirds`, `half`, `2/3` or `½`."""
    token, before = tokens[at], tokens[at - 1] if at else None
    if before is not None and _says_which(before, text):
        return None
    parts = _PARTS.get(text[token.start : token.end].lower())
    number = None if before is None else _number(before)
    if parts is None:
        is_fraction = before is not None and _is_fraction(before, token, text)
        parts = _number(token) if is_fraction else None
    elif number is None and parts == _PARTS["half"]:
        return Share(50.0, at, at + 1, is_counted=False)
    return _share(number, parts, at - 1, at + 1, is_counted=False)


def _is_fraction(one: Token, other: Token, text: str) -> bool:
    """Return whether two numbers are written as `1/2` or `½`."""
    is_sign = one.start == other.start and one.end - one.start == 1
    return is_sign or text[one.end : other.start] in ("/", "⁄")


def _says_which(token: Token, text: str) -> bool:
    """Return whether a word says which part is meant, as in `the 1st quarter of the year`."""
    return text[token.start : token.end].lower() in _WHICH or is_ordinal(token, text)


def is_ordinal(token: Token, text: str) -> bool:
    """Return whether a number is written as `third` or `3rd`."""
    is_spelled = text[token.start : token.end].lower() in ORDINALS
    return is_spelled or _SUFFIX.match(text, token.end) is not None


def _of_number(at: int, tokens: Sequence[Token], text: str) -> Share | None:
    """Return `1 in 4`, `3 out of 5`, `one in every ten` or `one of every ten`."""
    first = at - 1
    has_every = first > 0 and tokens[first].form.stem in _EVERY
    first -= has_every
    if first < 1 or tokens[first].form.stem not in _IN:
        return None
    if tokens[first].form.stem == "of":
        has_out = tokens[first - 1].form.stem == "out"
        if not (has_out or has_every):
            return None
        first -= has_out
    if first < 1 or not _are_joined(tokens[first - 1 : at + 1], text):
        return None
    number, whole = _number(tokens[first - 1]), _number(tokens[at])
    if number != 1 and (whole is None or whole > _MOST_COUNTED):
        return None
    return _share(number, whole, first - 1, at + 1, is_counted=True)


def _are_joined(tokens: Sequence[Token], text: str) -> bool:
    """Return whether only blanks are between the words: `Passage 1) In 1985` has none."""
    return all(text[one.end : other.start] == " " for one, other in pairwise(tokens))


def _share(
    number: int | None, parts: int | None, start: int, end: int, *, is_counted: bool
) -> Share | None:
    if number is None or parts is None or not 0 < number < parts:
        return None
    return Share(100 * number / parts, start, end, is_counted)


def _number(token: Token) -> int | None:
    digits = token.form.stem
    if digits in ("a", "an", "one"):
        return 1
    return int(digits) if token.form.is_number and digits.isascii() and digits.isdecimal() else None
