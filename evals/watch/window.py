"""A window of changes: the pairs that became complete, or were first judged, in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from collector.client import PairChanges
from collector.columns import Table
from collector.data_hash import ordered
from evals.evidence.columns import BoolColumn, Counts, Evidence, FloatColumn
from evals.evidence.pairs_table import from_table

_NEVER = np.iinfo(np.int64).max
_SIDES = ("baseline", "candidate")


class Place(NamedTuple):
    """The position up to which everything is counted."""

    arrived: int
    scored: int


class Losses(NamedTuple):
    """Differences candidate − baseline of the pairs that newly count, and their rows.

    If only one side has a score, `lowest` and `highest` take either extreme for the other.
    """

    rows: Counts
    lowest: FloatColumn
    highest: FloatColumn
    baseline: FloatColumn
    """Minimum outcome of the baseline's answers."""


@dataclass(frozen=True)
class Window:
    """Pairs with changes, and the numbers of those changes."""

    evidence: Evidence
    table: Table
    """The columns of the pairs, in the evidence's order."""
    start: Place
    end: Place
    arrived: tuple[Counts, Counts]
    """The number of each side's first generation; the greatest integer without one."""
    scored: Mapping[str, tuple[Counts, Counts]]
    first_repeat: BoolColumn
    duplicates: Counts

    @cached_property
    def complete_at(self) -> Counts:
        """Return the number of the generation that completed each pair."""
        return np.maximum(*self.arrived)

    @cached_property
    def answered_at(self) -> Counts:
        """Return the number of each key's first generation: in split traffic, its one answer."""
        return np.minimum(*self.arrived)

    def since(self, at: Counts) -> BoolColumn:
        """Return which of these numbers are in the window."""
        return np.asarray((at > self.start.arrived) & (at <= self.end.arrived))

    def newly_judged(self, metric: str, at: Counts, *, paired: bool) -> BoolColumn:
        """Return which pairs got the last of their scores of a metric in this window."""
        return np.asarray(
            self._scored_by(metric, at, self.end, paired=paired)
            & ~self._scored_by(metric, at, self.start, paired=paired)
        )

    def _scored_by(self, metric: str, at: Counts, place: Place, *, paired: bool) -> BoolColumn:
        """Return the pairs of which all answers that did not fail, at least one, are judged."""
        if metric not in self.scored:
            return np.zeros(len(self.evidence), dtype=np.bool_)
        by_then = [scored <= place.scored for scored in self.scored[metric]]
        sides = (self.evidence.baseline, self.evidence.candidate)
        done = [judged | side.failed for judged, side in zip(by_then, sides, strict=True)]
        if not paired:
            done = [d | ~side.present for d, side in zip(done, sides, strict=True)]
        return np.asarray((at <= place.arrived) & done[0] & done[1] & (by_then[0] | by_then[1]))


def read(changes: PairChanges, start: Place) -> Window:
    """Read a window from the collector's response."""
    table = ordered(changes.table)
    extra = [name for name in table.columns if _is_number(name)]
    plain = table.without(extra)
    metrics = {name.split("_scored_", 1)[1] for name in extra if "_scored_" in name}
    return Window(
        evidence=from_table(plain),
        table=plain,
        start=start,
        end=Place(changes.arrived_up_to, changes.scored_up_to),
        arrived=_both(table, "{}_arrival"),
        scored={metric: _both(table, f"{{}}_scored_{metric}") for metric in metrics},
        first_repeat=table["repeat"].ints() == 0,
        duplicates=table["baseline_duplicates"].ints() + table["candidate_duplicates"].ints(),
    )


def _is_number(name: str) -> bool:
    side, _, rest = name.partition("_")
    return side in _SIDES and (rest == "arrival" or rest.startswith("scored_"))


def _both(table: Table, name: str) -> tuple[Counts, Counts]:
    baseline, candidate = (table[name.format(side)].ints(missing=_NEVER) for side in _SIDES)
    return baseline, candidate
