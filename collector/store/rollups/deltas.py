"""Single source of truth for what a generation adds to its rollups.

A commit adds one delta for each series and minute that it touches, in the same transaction as the
rows that it counts. A generation's minute is that of its start.
"""

import json
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from collector.store import digests
from collector.store.engine_spans import Joined
from collector.store.generation_rows import Row
from collector.store.rollups import state
from collector.store.rollups.state import COUNTS, METRICS

MINUTE_S = 60
_NS = 1_000_000_000
_LATEST_NS = 2**63 - 1
_NO_COUNTS = (0,) * len(COUNTS)


class Series(NamedTuple):
    """What a rollup is of."""

    rollout: str
    arm: str | None
    cohort: str | None

    @property
    def id(self) -> int:
        """The id of its row."""
        return _id_of(self)


@lru_cache(maxsize=4096)
def _id_of(series: Series) -> int:
    return digests.id_of(json.dumps(series).encode())


class Delta(NamedTuple):
    """What one commit adds to one minute of one series."""

    series: Series
    start_unix_s: int
    packed: state.Packed


def of_rows(rows: Iterable[Row]) -> list[Delta]:
    """Return what the generations add; those of no rollout add nothing."""
    counted = [row for row in rows if "rollout" in row]
    return _sum(counted, list(map(_counts, counted)), list(map(_measured, counted)))


def of_joined(joined: Iterable[Joined]) -> list[Delta]:
    """Return what generations add that were counted already, and were given further times."""
    given = [
        (generation, added)
        for generation, added in joined
        if "rollout" in generation and "error_type" not in generation and added
    ]
    return _sum(
        [generation for generation, _ in given],
        [_NO_COUNTS] * len(given),
        [tuple(added.get(name, math.nan) for name in METRICS) for _, added in given],
    )


def _sum(
    rows: Sequence[Row], counts: Sequence[tuple[int, ...]], measured: Sequence[tuple[float, ...]]
) -> list[Delta]:
    """Return what rows add, of which each has its `state.COUNTS` and `state.METRICS`.

    A metric is NaN where nothing was measured.
    """
    if not rows:
        return []
    numbers: dict[tuple[str, str | None, str | None, int], int] = {}
    groups = [
        numbers.setdefault(
            (
                row["rollout"],
                row.get("arm"),
                row.get("cohort"),
                row["start_unix_ns"] // (_NS * MINUTE_S),
            ),
            len(numbers),
        )
        for row in rows
    ]
    first, last = [_LATEST_NS] * len(numbers), [0] * len(numbers)
    for number, row in zip(groups, rows, strict=True):
        first[number] = min(first[number], row["start_unix_ns"])
        last[number] = max(last[number], row["end_unix_ns"])
    packed = state.observe(groups, counts, measured)
    return [
        Delta(
            Series(rollout, arm, cohort),
            minute * MINUTE_S,
            state.Packed(first[n], last[n], *packed[n]),
        )
        for (rollout, arm, cohort, minute), n in numbers.items()
    ]


def _counts(row: Row) -> tuple[int, ...]:
    """Return the generation's row of `state.COUNTS`."""
    get = row.get
    inputs, outputs, usable = get("input_tokens"), get("output_tokens"), row["counts_usable"]
    steps = get("spec_steps") if usable else None
    return (
        1,
        "error_type" in row,
        "quality" in row,
        inputs is not None,
        inputs or 0,
        outputs is not None,
        outputs or 0,
        usable,
        steps is not None,
        steps or 0,
        row["spec_draft_tokens"] if usable else 0,
        row["spec_accepted_tokens"] if usable else 0,
        get("fallback") is True,
        get("retries") or 0,
    )


def _measured(row: Row) -> tuple[float, ...]:
    """Return the generation's row of `state.METRICS`: no time of one that failed."""
    get = row.get
    if "error_type" in row:
        return (math.nan,) * 5 + (get("output_tokens", math.nan),)
    return (
        get("ttft_s", math.nan),
        get("tpot_s", math.nan),
        (row["end_unix_ns"] - row["start_unix_ns"]) / _NS,
        get("server_ttft_s", math.nan),
        get("queue_s", math.nan),
        get("output_tokens", math.nan),
    )
