"""Numbers whose unit of measurement or money is another one than in the passages."""

from collections.abc import Sequence
from itertools import pairwise

from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.tokens import Token
from evals.evaluators.groundedness.word_classes import UNITS

_DEGREES = frozenset(map(stem, ["degrees", "fahrenheit", "celsius"]))
"""Stems that may stand for each other: `350 degrees`, `350°F`."""


def other_units(
    tokens: Sequence[Token], rows: Sequence[int], text: str, passages: Passages
) -> tuple[tuple[str, str], ...]:
    """Return numbers with units as written, each with the unit that the passages have instead.

    Only numbers that have a unit wherever the passages hold them, and never this one.
    `rows` are the passages' ids of the tokens, −1 for absent ones.
    """
    found = []
    for (number, row), (unit, _) in pairwise(zip(tokens, rows, strict=True)):
        if row < 0 or not number.form.is_number or not _is_unit(unit):
            continue
        behind = [passages.places[place + 1] for place in passages.positions[row]]
        others = [t.form.stem for t in behind if t is not None and _is_unit(t)]
        if len(others) == len(behind) and not any(_is_same(unit.form.stem, s) for s in others):
            found.append((text[number.start : unit.end], UNITS[others[0]]))
    return tuple(found)


def _is_unit(token: Token) -> bool:
    is_plural = token.form.stem == "second" and token.end - token.start == 1  # as in `the 1990s`
    return token.form.stem in UNITS and not token.form.is_number and not is_plural


def _is_same(one: str, other: str) -> bool:
    return one == other or {one, other} <= _DEGREES
