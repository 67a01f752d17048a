"""Find the tokens in which two texts differ."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
MOST = 1_500
"""Limit on the tokens compared per text: the time grows with the product of both."""


class TextRun(NamedTuple):
    """A run of consecutive tokens of a text."""

    text: str
    shared: bool
    """Whether the diff aligns it with the same run in the other text."""


def compare(baseline: str, candidate: str) -> tuple[list[TextRun], list[TextRun]]:
    """Return both texts as runs of tokens: words, punctuation marks and white space.

    Tokens after the first `MOST` are not compared and count as not shared.
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
