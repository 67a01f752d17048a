"""Single source of truth for pairing: which two generations are a pair.

The key is (rollout, prompt id, repeat); a generation that lacks one of them, or its arm, pairs with
nothing. If an arm has several generations with one key, the first received is the pair's side: a
rerun must not replace evidence, whatever start time it reports. Later ones are duplicates.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Row, Select, select

from collector.contract import Arm, PairKey
from collector.store.reader import StoreConnection
from collector.store.tables import generation as g

REQUIRED = (
    g.c.prompt_id,
    g.c.repeat,
    g.c.arm,
    g.c.start_unix_ns,
    g.c.trace_id,
    g.c.span_id,
    g.c.id,
)
"""Columns that pairing itself needs; they come first in every row."""
_KEY = itemgetter(0, 1)
_ARM = 2
_ID = 6
_ARRIVAL = itemgetter(_ID)
_PROMPTS_A_QUERY = 1000


class Sides(NamedTuple):
    """The rows of one pair; a side that has not arrived is None."""

    key: PairKey
    baseline: Row[Any] | None
    candidate: Row[Any] | None
    baseline_ids: tuple[int, ...]
    """Ids of all the side's generations in the order of arrival, including duplicates."""
    candidate_ids: tuple[int, ...]

    @property
    def baseline_duplicates(self) -> int:
        """The number of baseline generations beyond the first."""
        return max(len(self.baseline_ids) - 1, 0)

    @property
    def candidate_duplicates(self) -> int:
        """The number of candidate generations beyond the first."""
        return max(len(self.candidate_ids) - 1, 0)

    @property
    def cohort(self) -> str | None:
        """The baseline's cohort, else the candidate's; the rows must have the column."""
        cohorts = (side.cohort for side in (self.baseline, self.candidate) if side is not None)
        return next((cohort for cohort in cohorts if cohort is not None), None)


def read(
    connection: StoreConnection,
    wanted: Iterable[Column[Any]],
    rollout: str,
    after: PairKey | None = None,
    up_to: int | None = None,
    only: PairKey | None = None,
) -> Generator[Sides, None, None]:
    """Yield the rollout's pairs lazily, ordered by (prompt id, repeat), after the key `after`.

    Uses only generations with ids up to `up_to`, if given; `only` restricts to one key. Close the
    generator if you do not read it to the end.
    """
    statement = _rows_of(wanted, rollout).order_by(g.c.prompt_id, g.c.repeat)
    if only is not None:
        statement = statement.where(g.c.prompt_id == only.prompt_id, g.c.repeat == only.repeat)
    with closing(connection.reader.rows_of_pairs(statement, after, up_to)) as found:
        for rows in found:
            yield _sides(PairKey(*_KEY(rows[0])), rows)


def of_prompts(
    connection: Connection,
    wanted: Iterable[Column[Any]],
    rollout: str,
    prompts: Sequence[str],
    repeats: Sequence[int] | None = None,
) -> Iterator[Sides]:
    """Yield the pairs of these prompts and repeats (None: all), grouped by prompt."""
    for at in range(0, len(prompts), _PROMPTS_A_QUERY):
        some = g.c.prompt_id.in_(prompts[at : at + _PROMPTS_A_QUERY])
        statement = _rows_of(wanted, rollout).where(some).order_by(g.c.prompt_id, g.c.repeat)
        if repeats is not None:
            statement = statement.where(g.c.repeat.in_(repeats))
        for key, group in groupby(connection.execute(statement), key=_KEY):
            yield _sides(PairKey(*key), list(group))


def _rows_of(wanted: Iterable[Column[Any]], rollout: str) -> Select[Any]:
    return select(*columns(wanted)).where(
        g.c.rollout == rollout,
        g.c.prompt_id.is_not(None),
        g.c.repeat.is_not(None),
        g.c.arm.is_not(None),
    )


def columns(wanted: Iterable[Column[Any]]) -> tuple[Column[Any], ...]:
    """Return the columns of the rows that `read` yields."""
    return tuple(dict.fromkeys((*REQUIRED, *wanted)))


def _sides(key: PairKey, rows: Sequence[Row[Any]]) -> Sides:
    baseline = [row for row in rows if row[_ARM] == Arm.BASELINE]
    candidate = [row for row in rows if row[_ARM] == Arm.CANDIDATE]
    return Sides(
        key,
        min(baseline, key=_ARRIVAL, default=None),
        min(candidate, key=_ARRIVAL, default=None),
        tuple(sorted(row[_ID] for row in baseline)),
        tuple(sorted(row[_ID] for row in candidate)),
    )
