"""Describe the cost of answers in a few words."""

import math
from collections.abc import Iterator, Sequence

from collector.contract import CostComparison

COLUMNS = ("Baseline", "Candidate", "Difference", "Limits", "Rejected drafts", "Limits")
"""Titles of the columns of `numbers`."""


def title(costs: Sequence[CostComparison]) -> str:
    """Return the title of a table of costs: currency, unit, and the load that shares an hour."""
    first = costs[0]
    money = f"in {first.currency} " if first.currency else ""
    shared = "" if first.in_flight is None else f", with {_in_flight(first.in_flight)} per route"
    confidence = f"limits one-sided, {first.confidence:.0%} each"
    return f"Cost {money}per million output tokens{shared} ({confidence})"


def _in_flight(mean: float) -> str:
    shown = f"{mean:.3g}"
    return f"{shown} request{'' if shown == '1' else 's'} in flight"


def amount(value: float | None, *, signed: bool = False) -> str:
    """Return money to three significant digits, without its currency."""
    if value is None:
        return "–"
    decimals = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:{'+' if signed else ''},.{decimals}f}"


def numbers(cost: CostComparison) -> tuple[str, ...]:
    """Return the texts of `COLUMNS`."""
    return (
        amount(cost.baseline),
        amount(cost.candidate),
        amount(cost.difference, signed=True),
        _between(cost.lower, cost.upper, signed=True),
        amount(cost.rejected_drafts),
        _between(cost.rejected_drafts_lower, cost.rejected_drafts_upper),
    )


def _between(lower: float | None, upper: float | None, *, signed: bool = False) -> str:
    if lower is None and upper is None:
        return amount(None)
    return f"{amount(lower, signed=signed)} … {amount(upper, signed=signed)}"


def notes(costs: Sequence[CostComparison]) -> Iterator[str]:
    """Yield each reason why numbers are absent, once, with the scopes concerned."""
    scopes: dict[str, list[str]] = {}
    for cost in costs:
        for note in cost.notes:
            scopes.setdefault(note, []).append("all" if cost.cohort is None else cost.cohort)
    for note, concerned in scopes.items():
        yield note if len(concerned) == len(costs) else f"{', '.join(concerned)}: {note}"
