"""Single source of truth for the contribution of a generation to its rollups.

A commit writes one delta for each series and minute that it touches, in the same transaction as the
rows that it counts. A generation belongs to the minute of its start.
"""

import json
import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from collector.store import digests
from collector.store.engine_spans import EnrichedGeneration
from collector.store.generation_rows import Row
from collector.store.rollups import columns, state
from collector.store.rollups.columns import Columns
from collector.store.rollups.state import COUNTS, METRICS, Ints, Matrix

MINUTE_S = 60
_NS = 1_000_000_000
_LATEST_NS = 2**63 - 1
_INTEGERS: Final = (
    "start_unix_ns",
    "end_unix_ns",
    "error_type",
    "quality",
    "input_tokens",
    "output_tokens",
    "counts_usable",
    "spec_steps",
    "spec_draft_tokens",
    "spec_accepted_tokens",
    "fallback",
    "retries",
)
"""Columns read as integers; for some only their presence matters."""
_NUMBERS: Final = tuple(name for name in METRICS if name not in ("e2e_s", "output_tokens"))
COLUMNS: Final = ("rollout", "arm", "cohort", "sentinel", *_INTEGERS, *_NUMBERS)
"""The columns that `of_rows` reads."""


class Series(NamedTuple):
    """The generations that a rollup counts."""

    rollout: str
    arm: str | None
    cohort: str | None

    @property
    def id(self) -> int:
        """The id of the series' row."""
        return _id_of(self)


@lru_cache(maxsize=4096)
def _id_of(series: Series) -> int:
    return digests.id_of(json.dumps(series).encode())


class Delta(NamedTuple):
    """The contribution of one commit to one minute of one series."""

    series: Series
    start_unix_s: int
    packed: state.Packed


def of_rows(rows: Iterable[Row]) -> list[Delta]:
    """Return the deltas of new generations.

    Those without a rollout contribute nothing, nor do sentinels: what an engine answers again and
    again, from its prefix cache, says nothing of its traffic.
    """
    counted = [row for row in rows if _is_counted(row)]
    if not counted:
        return []
    read = columns.read(counted, _INTEGERS, _NUMBERS)
    return _sum(counted, read, _counts(read), _measured(read))


def of_joined(joined: Iterable[EnrichedGeneration]) -> list[Delta]:
    """Return the deltas of fields that engine spans added to generations counted before."""
    given = [
        (generation, added) for generation, added in joined if _is_counted(generation) and added
    ]
    if not given:
        return []
    generations = [generation for generation, _ in given]
    counts = _counts(columns.read([added for _, added in given], _INTEGERS, ()))
    counts[:, COUNTS.index("generations")] = 0
    measured = [
        [math.nan if "error_type" in generation else added.get(name, math.nan) for name in METRICS]
        for generation, added in given
    ]
    return _sum(generations, columns.read(generations, _INTEGERS, ()), counts, np.asarray(measured))


def _is_counted(row: Row) -> bool:
    return "rollout" in row and "sentinel" not in row


def _sum(rows: list[Row], read: Columns, counts: Ints, measured: Matrix) -> list[Delta]:
    """Return the deltas of rows, given each row's `state.COUNTS` and `state.METRICS`.

    A metric that was not measured is NaN.
    """
    start, end = read.integers["start_unix_ns"], read.integers["end_unix_ns"]
    numbers: dict[tuple[str, str | None, str | None, int], int] = {}
    groups = [
        numbers.setdefault(
            (row["rollout"], row.get("arm"), row.get("cohort"), minute), len(numbers)
        )
        for row, minute in zip(rows, (start // (_NS * MINUTE_S)).tolist(), strict=True)
    ]
    first, last = np.full(len(numbers), _LATEST_NS), np.zeros(len(numbers), np.int64)
    np.minimum.at(first, groups, start)
    np.maximum.at(last, groups, end)
    packed = state.observe(groups, counts, measured)
    times = zip(first.tolist(), last.tolist(), strict=True)
    return [
        Delta(
            Series(rollout, arm, cohort), minute * MINUTE_S, state.Packed(*between, *packed[number])
        )
        for ((rollout, arm, cohort, minute), number), between in zip(
            numbers.items(), times, strict=True
        )
    ]


def _counts(read: Columns) -> Ints:
    """Return a row of `state.COUNTS` per generation."""
    value, present = read.integers, read.present
    usable = value["counts_usable"]
    return np.column_stack(
        (
            np.ones_like(usable),
            present["error_type"],
            present["quality"],
            present["input_tokens"],
            value["input_tokens"],
            present["output_tokens"],
            value["output_tokens"],
            usable,
            present["spec_steps"] * usable,
            value["spec_steps"] * usable,
            value["spec_draft_tokens"] * usable,
            value["spec_accepted_tokens"] * usable,
            value["fallback"],
            value["retries"],
        )
    )


def _measured(read: Columns) -> Matrix:
    """Return a row of `state.METRICS` per generation; unknown numbers are NaN.

    So are times of failed generations, and durations of none: no request is answered in no time.
    """
    value = read.integers
    failed = read.present["error_type"]
    lasted = (value["end_unix_ns"] - value["start_unix_ns"]) / _NS
    e2e_s = np.where(lasted > 0, lasted, math.nan)
    times = {**read.numbers, "e2e_s": e2e_s}
    measured = {name: np.where(failed, math.nan, time) for name, time in times.items()}
    tokens = np.where(read.present["output_tokens"], value["output_tokens"], math.nan)
    measured["output_tokens"] = tokens
    return np.column_stack([measured[name] for name in METRICS])
