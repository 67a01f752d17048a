"""Which tokens of two texts differ."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
MOST = 1_500
"""Tokens of a text that are compared: the time grows with their product."""


class TextRun(NamedTuple):
    """A run of a text's tokens."""

    text: str
    shared: bool
    """Whether the other text has it too, at that place."""


def compare(baseline: str, candidate: str) -> tuple[list[TextRun], list[TextRun]]:
    """Return both texts in pieces; words, signs and white space are tokens.

    What stands beyond the first `MOST` tokens is not compared, and counts as not shared.
    """
    ours, theirs = _TOKEN.findall(baseline), _TOKEN.findall(candidate)
    matcher = SequenceMatcher(None, ours[:MOST], theirs[:MOST], autojunk=False)
    left, right = list[TextRun](), list[TextRun]()
    for tag, a, b, c, d in matcher.get_opcodes():
        _add(left, ours[a:b], shared=tag == "equal")
        _add(right, theirs[c:d], shared=tag == "equal")
    _add(left, ours[MOST:], shared=False)
    _add(right, theirs[MOST:], shared=False)
    return left, right


def _add(pieces: list[TextRun], tokens: Sequence[str], *, shared: bool) -> None:
    if tokens:
        pieces.append(TextRun("".join(tokens), shared))
