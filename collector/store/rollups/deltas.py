"""Single source of truth for what a generation adds to its rollups.

A commit adds one delta for each series and minute that it touches, in the same transaction as the
rows that it counts. A generation's minute is that of its start.
"""

import json
import math
from collections.abc import Iterable
from typing import NamedTuple

from collector.store import digests
from collector.store.engine_spans import Joined
from collector.store.generation_rows import Row
from collector.store.rollups import state
from collector.store.rollups.state import COUNTS, METRICS

MINUTE_S = 60
_NS = 1_000_000_000
_NO_COUNTS = (0,) * len(COUNTS)


class Series(NamedTuple):
    """What a rollup is of."""

    rollout: str
    arm: str | None
    cohort: str | None

    @property
    def id(self) -> int:
        """The id of its row."""
        return digests.id_of(json.dumps(self).encode())


class Delta(NamedTuple):
    """What one commit adds to one minute of one series."""

    series: Series
    start_unix_s: int
    packed: state.Packed


class _Group(NamedTuple):
    series: Series
    start_unix_s: int


class _Observed(NamedTuple):
    row: Row
    """Of which series it is, and of what time."""
    counts: tuple[int, ...]
    """As `state.COUNTS`."""
    measured: tuple[float, ...]
    """As `state.METRICS`, NaN where nothing was measured."""


def of_rows(rows: Iterable[Row]) -> list[Delta]:
    """Return what the generations add; those of no rollout add nothing."""
    return _sum(_Observed(row, _counts(row), _measured(row)) for row in rows if "rollout" in row)


def of_joined(joined: Iterable[Joined]) -> list[Delta]:
    """Return what generations add that were counted already, and were given further times."""
    return _sum(
        _Observed(generation, _NO_COUNTS, tuple(added.get(name, math.nan) for name in METRICS))
        for generation, added in joined
        if "rollout" in generation and "error_type" not in generation and added
    )


def _sum(observations: Iterable["_Observed"]) -> list[Delta]:
    numbers: dict[_Group, int] = {}
    groups: list[int] = []
    counts: list[tuple[int, ...]] = []
    measured: list[tuple[float, ...]] = []
    first: list[int] = []
    last: list[int] = []
    for row, row_counts, row_measured in observations:
        start, end = row["start_unix_ns"], row["end_unix_ns"]
        group = _Group(
            Series(row["rollout"], row.get("arm"), row.get("cohort")),
            start // _NS // MINUTE_S * MINUTE_S,
        )
        number = numbers.setdefault(group, len(numbers))
        if number == len(first):
            first.append(start)
            last.append(end)
        else:
            first[number], last[number] = min(first[number], start), max(last[number], end)
        groups.append(number)
        counts.append(row_counts)
        measured.append(row_measured)
    if not groups:
        return []
    packed = state.observe(groups, counts, measured)
    return [
        Delta(group.series, group.start_unix_s, state.Packed(first[n], last[n], *packed[n]))
        for group, n in numbers.items()
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
