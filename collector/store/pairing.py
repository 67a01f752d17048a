"""Single source of truth for pairing: which two generations are a pair.

The key is (rollout, prompt id, repeat); a generation that lacks one of them, or its arm, pairs with
nothing. Where an arm has several generations under one key, the first that was received is the
pair's side: a rerun must not replace evidence, whatever start it states. Later ones are duplicates.
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
"""Columns that pairing itself needs; they stand first in every row."""
_KEY = itemgetter(0, 1)
_ARM = 2
_ID = 6
_ARRIVAL = itemgetter(_ID)
_PROMPTS_A_QUERY = 1000


class Sides(NamedTuple):
    """The rows of one pair; a side that never arrived is None."""

    key: PairKey
    baseline: Row[Any] | None
    candidate: Row[Any] | None
    baseline_ids: tuple[int, ...]
    """Of all its generations in the order of arrival, duplicates included."""
    candidate_ids: tuple[int, ...]

    @property
    def baseline_duplicates(self) -> int:
        """Count the baseline's generations beyond the first."""
        return max(len(self.baseline_ids) - 1, 0)

    @property
    def candidate_duplicates(self) -> int:
        """Count the candidate's generations beyond the first."""
        return max(len(self.candidate_ids) - 1, 0)

    @property
    def cohort(self) -> str | None:
        """The baseline's cohort, else the candidate's; the rows must carry it."""
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
    """Yield the rollout's pairs by (prompt id, repeat), beginning after a key; lazily.

    Whoever does not read to the end must close it. Of the generations whose ids are at most
    `up_to`, or of all; `only` asks for the pair of one key.
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
    """Yield the pairs of some prompts, of some repeats or all; those of one prompt together."""
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
