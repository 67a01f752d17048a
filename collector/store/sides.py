"""Single source of truth for pairing: which two generations are a pair.

The key is (rollout, prompt id, repeat); a generation that lacks one of them, or its arm, pairs with
nothing. Where an arm has several generations under one key, the earliest by start, trace id and
span id is the pair's side: a rerun must not replace evidence. The later ones are duplicates.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, RowMapping, select, tuple_

from collector.contract import Arm, PairKey
from collector.store.tables import generation as g

_KEY = itemgetter("prompt_id", "repeat")
_AGE = itemgetter("start_unix_ns", "trace_id", "span_id")
REQUIRED = (g.c.prompt_id, g.c.repeat, g.c.arm, g.c.start_unix_ns, g.c.trace_id, g.c.span_id)
"""Columns that pairing itself needs."""


class Sides(NamedTuple):
    """The rows of one pair; a side that never arrived is None."""

    key: PairKey
    baseline: RowMapping | None
    candidate: RowMapping | None
    baseline_duplicates: int
    candidate_duplicates: int

    @property
    def cohort(self) -> str | None:
        """The baseline's cohort, else the candidate's; the rows must carry it."""
        cohorts = (side["cohort"] for side in (self.baseline, self.candidate) if side is not None)
        return next((cohort for cohort in cohorts if cohort is not None), None)


def read(
    connection: Connection,
    columns: Iterable[Column[Any]],
    rollout: str,
    after: PairKey | None = None,
) -> Iterator[Sides]:
    """Yield the rollout's pairs by (prompt id, repeat), beginning after a key; lazily."""
    statement = select(*dict.fromkeys((*REQUIRED, *columns))).where(
        g.c.rollout == rollout,
        g.c.prompt_id.is_not(None),
        g.c.repeat.is_not(None),
        g.c.arm.is_not(None),
    )
    if after is not None:
        statement = statement.where(tuple_(g.c.prompt_id, g.c.repeat) > tuple_(*after))
    rows = connection.execution_options(yield_per=500).execute(
        statement.order_by(g.c.prompt_id, g.c.repeat)
    )
    for key, group in groupby(rows.mappings(), key=_KEY):
        yield _sides(PairKey(*key), list(group))


def _sides(key: PairKey, rows: list[RowMapping]) -> Sides:
    baseline = [row for row in rows if row["arm"] == Arm.BASELINE]
    candidate = [row for row in rows if row["arm"] == Arm.CANDIDATE]
    return Sides(
        key,
        min(baseline, key=_AGE, default=None),
        min(candidate, key=_AGE, default=None),
        max(len(baseline) - 1, 0),
        max(len(candidate) - 1, 0),
    )
