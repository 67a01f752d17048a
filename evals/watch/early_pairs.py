"""The first pairs of each scope, kept until the last look, for quantiles.

They are not part of the stored state; a restart reads them again from the collector.
"""

from collections import defaultdict

import numpy as np

from collector.columns import Table, joined
from evals.evidence.columns import BoolColumn, Counts, Evidence
from evals.evidence.pairs_table import from_table
from evals.watch.window import Window


class EarlyPairs:
    """Pairs in the order in which they became complete, for all pairs and for each cohort."""

    def __init__(self, most: int) -> None:
        """Keep at least `most` answers of each arm in each scope."""
        self._most = most
        self.arrived_up_to = 0
        """Pairs completed up to this number are included; adding them again changes nothing."""
        self._tables: dict[str | None, list[Table]] = defaultdict(list)
        self._answers: dict[str | None, Counts] = defaultdict(lambda: np.zeros(2, dtype=np.int64))

    def add(self, window: Window, counts: BoolColumn, at: Counts) -> None:
        """Add the window's pairs that count, which became complete at these numbers."""
        evidence, counts = window.evidence, counts & (at > self.arrived_up_to)
        self.arrived_up_to = max(self.arrived_up_to, window.end.arrived)
        sides = (evidence.baseline.present, evidence.candidate.present)
        for scope in (None, *evidence.cohorts):
            if (self._answers[scope] >= self._most).all():
                continue
            rows = np.flatnonzero(counts & evidence.scope(scope))
            rows = rows[np.argsort(at[rows], kind="stable")]
            if len(rows):
                of_scores = list(filter(_is_of_score, window.table.columns))
                self._tables[scope].append(window.table.without(of_scores).take(rows))
                self._answers[scope] += [int(side[rows].sum()) for side in sides]

    def first(self, scope: str | None, pairs: int) -> Evidence | None:
        """Return the first pairs of a scope; `None` if there are fewer."""
        if self._answers[scope].min() < pairs:
            return None
        return from_table(joined(self._tables[scope]).take(np.arange(pairs)))

    def first_answers(self, answers: int, scope: str | None) -> Evidence | None:
        """Return split traffic until both arms have this many answers; `None` before that."""
        if self._answers[scope].min() < answers:
            return None
        table = joined(self._tables[scope])
        arms = [table[f"{side}_trace_id"].valid for side in ("baseline", "candidate")]
        enough = np.minimum(np.cumsum(arms[0]), np.cumsum(arms[1])) >= answers
        return from_table(table.take(np.arange(int(np.argmax(enough)) + 1)))


def _is_of_score(column: str) -> bool:
    """Return whether the column is of a score; not every window has it."""
    return any(part in column for part in ("_score_", "_unscored_", "_judge_"))
