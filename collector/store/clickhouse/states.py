"""Conversion of rollup states to ClickHouse columns and back: packed arrays become maps."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collector.store.clickhouse import schema
from collector.store.rollups.state import (
    BIN_RECORD,
    COUNT_RECORD,
    MOMENT_RECORD,
    ZERO,
    Packed,
)

_BINS_A_METRIC: Final = 2**16
Records = npt.NDArray[Any]  # Any: records of one of the types

ENDS: Final = "min(first_start_unix_ns) AS first_start, max(last_end_unix_ns) AS last_end"
COUNTS: Final = "sumMap(counts_high) AS high, sumMap(counts_low) AS low"
MEASURED: Final = (
    "sumMap(n) AS n_, sumMap(total) AS total_, sumMap(squares) AS squares_, "
    "minMap(smallest) AS smallest_, maxMap(largest) AS largest_, sumMap(bins) AS bins_"
)
MERGED: Final = f"{ENDS}, {COUNTS}, {MEASURED}"
"""SQL aggregates that merge states, in the order of `COLUMNS`."""
COLUMNS: Final = tuple(column.partition(" ")[0] for column in schema.STATE)


def to_columns(states: Sequence[Packed]) -> dict[str, pa.Array]:
    """Return the states as `COLUMNS`."""
    counts, count_ends = _joined([state.counts for state in states], COUNT_RECORD)
    moments, moment_ends = _joined([state.moments for state in states], MOMENT_RECORD)
    bins, bin_ends = _joined([state.bins for state in states], BIN_RECORD)
    bin_keys = bins["metric"].astype(np.uint32) * _BINS_A_METRIC + (
        bins["bin"].astype(np.int64) - ZERO
    ).astype(np.uint32)
    of_metrics = {
        name: _map(moment_ends, moments["metric"], moments[field])
        for name, field in (
            ("n", "n"),
            ("total", "sum"),
            ("squares", "squares"),
            ("smallest", "min"),
            ("largest", "max"),
        )
    }
    return {
        "first_start_unix_ns": pa.array([s.first_start_unix_ns for s in states], pa.int64()),
        "last_end_unix_ns": pa.array([s.last_end_unix_ns for s in states], pa.int64()),
        "counts_high": _map(count_ends, counts["count"], counts["high"]),
        "counts_low": _map(count_ends, counts["count"], counts["low"]),
        **of_metrics,
        "bins": _map(bin_ends, bin_keys, bins["n"]),
    }


def from_columns(columns: Sequence[pa.ChunkedArray]) -> Iterator[Packed]:
    """Yield the states in these `COLUMNS`, or in only the first four of them (no measurements)."""
    firsts, lasts, high, low = columns[:4]
    counts = _counts(high.to_pylist(), low.to_pylist())
    moments: Sequence[bytes] = [b""] * len(firsts)
    bins = moments
    if len(columns) > 4:
        moments = _moments([column.to_pylist() for column in columns[4:9]])
        bins = _bins(columns[9])
    yield from (
        Packed(*state)
        for state in zip(firsts.to_pylist(), lasts.to_pylist(), counts, moments, bins, strict=True)
    )


def _joined(packed: Sequence[bytes], kind: np.dtype[Any]) -> tuple[Records, list[int]]:
    """Return all records, and the offsets where each state begins and the last one ends."""
    ends = np.cumsum([0, *(len(one) // kind.itemsize for one in packed)])
    return np.frombuffer(b"".join(packed), kind), ends.tolist()


def _map(ends: list[int], keys: Records, values: Records) -> pa.Array:
    return pa.MapArray.from_arrays(
        pa.array(ends, pa.int32()),
        pa.array(np.ascontiguousarray(keys)),
        pa.array(np.ascontiguousarray(values)),
    )


_Map = list[tuple[int, Any]]  # Any: the map's values


def _counts(high: Sequence[_Map], low: Sequence[_Map]) -> list[bytes]:
    found = []
    # sumMap omits sums of 0.
    for highs, lows in zip(map(dict, high), map(dict, low), strict=True):
        records = [(i, highs.get(i, 0), lows.get(i, 0)) for i in sorted({*highs, *lows})]
        found.append(np.array(records, COUNT_RECORD).tobytes())
    return found


def _moments(columns: Sequence[Sequence[_Map]]) -> list[bytes]:
    found = []
    for row in zip(*columns, strict=True):
        n, total, squares, smallest, largest = map(dict, row)
        records = [
            (i, of, total.get(i, 0), squares.get(i, 0), smallest[i], largest[i])
            for i, of in sorted(n.items())
        ]
        found.append(np.array(records, MOMENT_RECORD).tobytes())
    return found


def _bins(column: pa.ChunkedArray) -> list[bytes]:
    found = []
    for chunk in column.chunks:
        keys = chunk.keys.to_numpy(zero_copy_only=False).astype(np.int64)
        records = np.empty(len(keys), BIN_RECORD)
        records["metric"] = keys // _BINS_A_METRIC
        records["bin"] = keys % _BINS_A_METRIC + ZERO
        records["n"] = chunk.items.to_numpy(zero_copy_only=False)
        ends = chunk.offsets.to_numpy() - chunk.offsets[0].as_py()
        found += [records[a:b].tobytes() for a, b in itertools.pairwise(ends)]
    return found
