"""Numbers whose unit of measurement or money is another one than in the passages."""

from collections.abc import Sequence

from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.quantities import RAISED
from evals.evaluators.groundedness.tokens import Token
from evals.evaluators.groundedness.word_classes import UNITS

_DEGREES = frozenset(["degree", "fahrenheit", "celsius"])
"""Units that may stand for each other: `350 degrees`, `350°F`."""


def other_units(
    tokens: Sequence[Token], rows: Sequence[int], text: str, passages: Passages
) -> tuple[tuple[str, str], ...]:
    """Return numbers with units as written, each with the unit that the passages have instead.

    Only numbers that have a unit wherever the passages hold them, and never this one.
    `rows` are the passages' ids of the tokens, −1 for absent ones.
    """
    found = []
    for at, (number, row) in enumerate(zip(tokens, rows, strict=True)):
        unit = _unit(tokens[at + 1 : at + 3]) if row >= 0 and number.form.is_number else ()
        if not unit:
            continue
        places = passages.positions[row]
        others = [_unit(passages.places[place + 1 : place + 3]) for place in places]
        if all(others) and not any(_is_same(unit, other) for other in others):
            end = tokens[at + len(unit)].end
            found.append((text[number.start : end], " ".join(others[0])))
    return tuple(found)


def _unit(behind: Sequence[Token | None]) -> tuple[str, ...]:
    """Return the names of the unit with which some words begin; empty if there is none."""
    found = list[str]()
    for token in behind:
        if token is None or token.form.is_number:
            break
        name = token.form.stem
        if name in UNITS:
            is_plural = token.end - token.start == 1 and UNITS[name] == "second"  # as in `the 90s`
            return () if is_plural else (*found, UNITS[name])
        if name not in RAISED or found:
            break
        found.append(RAISED[name])
    return ()


def _is_same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return one == other or {*one, *other} <= _DEGREES
