"""The greedy answers of a family's candidates that differ from the baseline's, side by side.

A candidate that is the baseline's own route asked again shows by how much the baseline differs from
itself: the three-way control.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from collector.contract import DivergedAnswers, Verdict
from evals.report.validity_words import load_words

TITLE = "greedy answers unlike the baseline's (median place)"

_Scope = tuple[str | None, tuple[int, int] | None]


class DivergenceRow(NamedTuple):
    """All candidates in one scope."""

    scope: str
    cells: tuple[str, ...]
    """In the verdicts' order, such as `3 of 160 (at 12)`; a dash if none was compared."""


def divergence_rows(verdicts: Mapping[str, Verdict]) -> Iterator[DivergenceRow]:
    """Yield the pool, each cohort and each load; nothing if no answers were compared."""
    found = {
        arm: {(one.cohort, one.in_flight): one for one in verdict.divergence}
        for arm, verdict in verdicts.items()
    }
    scopes = dict.fromkeys(scope for by_scope in found.values() for scope in by_scope)
    for scope in scopes:
        cells = (_cell(by_scope.get(scope)) for by_scope in found.values())
        yield DivergenceRow(_words(scope), tuple(cells))


def _words(scope: _Scope) -> str:
    cohort, in_flight = scope
    if in_flight is not None:
        return f"{load_words(in_flight)} in flight"
    return "release" if cohort is None else cohort


def _cell(one: DivergedAnswers | None) -> str:
    if one is None:
        return "–"
    at = "" if one.position_p50 is None else f" (at {one.position_p50:g})"
    return f"{one.diverged:,} of {one.compared:,}{at}"
