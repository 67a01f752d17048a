"""Rollup states: mergeable counts, moments and histograms of many generations.

A state is three packed arrays of records; each record contains the number of its count or metric.
So merging states is one concatenation and one sum by number, and stored rows stay valid when a
count or metric is appended to `COUNTS` or `METRICS`. Never reorder those lists.

The histogram has the logarithmic bins of DDSketch (Masson, Rim, Lee: "DDSketch: a fast and
fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019): bin i holds the values
in (γ^(i−1), γ^i], γ = (1 + ε)/(1 − ε), and stands for 2γ^i/(γ + 1), at most ε = 1 % from any of
them. Merging adds counts, so that the order of arrival changes nothing.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

COUNTS: Final = (
    "generations",
    "errors",
    "flagged",
    "with_input_tokens",
    "input_tokens",
    "with_output_tokens",
    "output_tokens",
    "usable_counts",
    "with_steps",
    "spec_steps",
    "spec_draft_tokens",
    "spec_accepted_tokens",
    "fallbacks",
    "retries",
)
METRICS: Final = (
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "server_ttft_s",
    "queue_s",
    "output_tokens",
    "ttfo_s",
)

LARGEST: Final = 1e15
"""Larger values (seconds or tokens) are ignored: they are no measurements and would spoil sums."""
RELATIVE_ERROR: Final = 0.01
_GAMMA: Final = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_LOG_GAMMA: Final = math.log(_GAMMA)
ZERO: Final = -(2**15)
_EXTREME: Final = 2**15 - 1

# A client may send any int64 as a count; two halves keep their sums from overflowing.
_LOW_BITS: Final = 32
_LOW: Final = 2**_LOW_BITS - 1
COUNT_RECORD = np.dtype([("count", "u1"), ("high", "<i8"), ("low", "<i8")])
MOMENT_RECORD = np.dtype(
    [
        ("metric", "u1"),
        ("n", "<i8"),
        ("sum", "<f8"),
        ("squares", "<f8"),
        ("min", "<f8"),
        ("max", "<f8"),
    ]
)
BIN_RECORD = np.dtype([("metric", "u1"), ("bin", "<i2"), ("n", "<i8")])

_PLACES_A_RECORD: Final = 4
"""Bins are summed in a dense array of at most this many elements per record, else by sorting."""

Matrix = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]  # Any: integers or doubles


class Packed(NamedTuple):
    """A state as it is stored."""

    first_start_unix_ns: int
    last_end_unix_ns: int
    counts: bytes
    moments: bytes
    bins: bytes


class Moments(NamedTuple):
    """Moments of one metric, in seconds or tokens."""

    n: int
    sum: float
    squares: float
    """Σ x²."""
    min: float
    max: float


class RollupState(NamedTuple):
    """The unpacked aggregate of many generations."""

    first_start_unix_ns: int
    last_end_unix_ns: int
    counts: dict[str, int]
    """A value for each of `COUNTS`."""
    moments: dict[str, Moments]
    """By metric; only metrics with a measurement."""
    bins: dict[str, dict[int, int]]

    def quantile(self, metric: str, q: float) -> float | None:
        """Return the q-quantile with a relative error of at most 1 %; None if n is 0.

        The exact quantile is the lower sample quantile: the value of 0-based rank ⌊q(n − 1)⌋.
        """
        bins = self.bins.get(metric)
        if not bins:
            return None
        moments = self.moments[metric]
        rank = math.floor(q * (moments.n - 1))
        if rank in (0, moments.n - 1):
            return moments.min if rank == 0 else moments.max
        seen = 0
        for index in sorted(bins):
            seen += bins[index]
            if seen > rank:
                return min(max(value_of(index), moments.min), moments.max)
        raise AssertionError("the ranks are counted from these bins")


def value_of(index: int) -> float:
    """Return the value that a bin stands for."""
    return 0.0 if index == ZERO else float(2 * _GAMMA**index / (_GAMMA + 1))


def observe(
    groups: Sequence[int],
    counts: Sequence[Sequence[int]] | Ints,
    measured: Sequence[Sequence[float]] | Matrix,
) -> dict[int, tuple[bytes, bytes, bytes]]:
    """Return the packed counts, moments and bins of each group of observations.

    `counts` has a row of `COUNTS` for each observation, `measured` a row of `METRICS` with NaN for
    missing measurements. Negative values and values above `LARGEST` are ignored.
    """
    group = np.asarray(groups, dtype=np.int64)
    owners, owner_of = np.unique(group, return_inverse=True)
    packed_counts = _observed_counts(owner_of, len(owners), counts)
    values = np.asarray(measured, dtype=np.float64).reshape(len(group), len(METRICS))
    rows, metrics = np.nonzero((values >= 0) & (values <= LARGEST))
    value, owner = values[rows, metrics], group[rows]
    moments = _observed_moments(owner, metrics, value)
    bins = _observed_bins(owner, metrics, value)
    return {
        g: (packed, moments.get(g, b""), bins.get(g, b""))
        for g, packed in zip(owners.tolist(), packed_counts, strict=True)
    }


def merge(states: Iterable[Packed]) -> Packed:
    """Return the merged state of at least one state."""
    return merge_each([list(states)])[0]


def merge_each(groups: Sequence[Sequence[Packed]]) -> list[Packed]:
    """Return the merged state of each group of states; no group may be empty.

    Pass many groups at once: numpy takes as long to merge one as to merge dozens.
    """
    counts = _merged_counts(*_records(groups, "counts", COUNT_RECORD), len(groups))
    moments = _merged_moments(*_records(groups, "moments", MOMENT_RECORD))
    bins = _merged_bins(*_records(groups, "bins", BIN_RECORD), len(groups))
    return [
        Packed(
            min(state.first_start_unix_ns for state in states),
            max(state.last_end_unix_ns for state in states),
            counts[owner],
            moments.get(owner, b""),
            bins.get(owner, b""),
        )
        for owner, states in enumerate(groups)
    ]


def unpack(packed: Packed) -> RollupState:
    """Unpack a merged state, in which each count, metric and bin has one record."""
    counts = dict.fromkeys(COUNTS, 0)
    for row in np.frombuffer(packed.counts, COUNT_RECORD):
        counts[COUNTS[row["count"]]] = (int(row["high"]) << _LOW_BITS) + int(row["low"])
    moments = {
        METRICS[row["metric"]]: Moments(
            int(row["n"]),
            float(row["sum"]),
            float(row["squares"]),
            float(row["min"]),
            float(row["max"]),
        )
        for row in np.frombuffer(packed.moments, MOMENT_RECORD)
    }
    bins: dict[str, dict[int, int]] = {}
    for metric, index, n in np.frombuffer(packed.bins, BIN_RECORD).tolist():
        bins.setdefault(METRICS[metric], {})[index] = n
    return RollupState(packed.first_start_unix_ns, packed.last_end_unix_ns, counts, moments, bins)


def _observed_counts(
    owner: Ints, owners: int, counts: Sequence[Sequence[int]] | Ints
) -> list[bytes]:
    matrix = np.asarray(counts, dtype=np.int64).reshape(len(owner), len(COUNTS))
    # Sorted by owner: adjacent rows are summed five times faster than scattered ones.
    matrix = matrix[np.argsort(owner, kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=owners))[:-1]))
    high = np.add.reduceat(matrix >> _LOW_BITS, starts)
    return _packed_counts(high, np.add.reduceat(matrix & _LOW, starts))


def _zeros(owners: int) -> Ints:
    return np.zeros((owners, len(COUNTS)), np.int64)


def _packed_counts(high: Ints, low: Ints) -> list[bytes]:
    """Return each owner's records, given the sums of the counts' high and low halves."""
    high, low = high + (low >> _LOW_BITS), low & _LOW
    owner, count = np.nonzero(high | low)
    out = np.empty(len(owner), dtype=COUNT_RECORD)
    out["count"], out["high"], out["low"] = count, high[owner, count], low[owner, count]
    records = _by_owner(owner, out)
    return [records.get(number, b"") for number in range(len(high))]


def _gathered(how: np.ufunc, into: Array, places: Ints | tuple[Ints, Ints], values: Array) -> Array:
    """Apply `how.at`: combine each value into its place of `into`, and return `into`.

    The values are copied first: the fields of packed records are unaligned, and numpy takes
    several times as long with them.
    """
    how.at(into, places, np.ascontiguousarray(values))
    return into


def _bin_of(value: Matrix) -> Ints:
    with np.errstate(divide="ignore"):
        index = np.ceil(np.log(value) / _LOG_GAMMA)
    clipped = np.clip(index, -_EXTREME, _EXTREME)
    return np.where(value == 0, ZERO, clipped).astype(np.int64)


def _observed_moments(owner: Ints, metric: Ints, value: Matrix) -> dict[int, bytes]:
    keys, inverse = np.unique(owner * 256 + metric, return_inverse=True)
    out = np.zeros(len(keys), dtype=MOMENT_RECORD)
    out["metric"] = keys % 256
    out["n"] = np.bincount(inverse)
    out["sum"] = np.bincount(inverse, value)
    out["squares"] = np.bincount(inverse, value * value)
    out["min"] = _gathered(np.minimum, np.full(len(keys), np.inf), inverse, value)
    out["max"] = _gathered(np.maximum, np.full(len(keys), -np.inf), inverse, value)
    return _by_owner(keys // 256, out)


def _observed_bins(owner: Ints, metric: Ints, value: Matrix) -> dict[int, bytes]:
    within = metric * 2**16 + (_bin_of(value) - ZERO)
    keys, n = np.unique(owner * 2**24 + within, return_counts=True)
    return _by_owner(keys // 2**24, _bin_records(keys % 2**24, n))


def _bin_records(within: Ints, n: Ints) -> npt.NDArray[Any]:  # Any: records
    out = np.empty(len(within), dtype=BIN_RECORD)
    out["metric"], out["bin"], out["n"] = within // 2**16, within % 2**16 + ZERO, n
    return out


def _by_owner(owner: Ints, records: npt.NDArray[Any]) -> dict[int, bytes]:  # Any: records
    """Split records sorted by owner into the bytes of each owner."""
    if not len(records):
        return {}
    owners, starts = np.unique(owner, return_index=True)
    # Slices of bytes: numpy takes a microsecond to slice an array, and there are thousands.
    packed = records.tobytes()
    ends = [*(starts * records.itemsize).tolist(), len(packed)]
    return {
        owner: packed[start:end]
        for owner, (start, end) in zip(owners.tolist(), pairwise(ends), strict=True)
    }


# Any below: records.
def _records(
    groups: Sequence[Sequence[Packed]], part: str, kind: np.dtype[Any]
) -> tuple[Ints, npt.NDArray[Any]]:
    """Return the group number of every record of one part of the states, and the records."""
    packed = [[getattr(state, part) for state in states] for states in groups]
    sizes = [sum(map(len, parts)) // kind.itemsize for parts in packed]
    owner = np.repeat(np.arange(len(groups), dtype=np.int64), sizes)
    return owner, np.frombuffer(b"".join(chain.from_iterable(packed)), kind)


def _merged_counts(owner: Ints, records: npt.NDArray[Any], owners: int) -> list[bytes]:
    high, low = _zeros(owners), _zeros(owners)
    places = (owner, records["count"].astype(np.int64))
    _gathered(np.add, high, places, records["high"])
    _gathered(np.add, low, places, records["low"])
    return _packed_counts(high, low)


def _merged_moments(owner: Ints, records: npt.NDArray[Any]) -> dict[int, bytes]:
    keys, inverse = np.unique(owner * 256 + records["metric"], return_inverse=True)
    out = np.zeros(len(keys), dtype=MOMENT_RECORD)
    out["metric"] = keys % 256
    out["n"] = _gathered(np.add, np.zeros(len(keys), np.int64), inverse, records["n"])
    for name in ("sum", "squares"):
        out[name] = _gathered(np.add, np.zeros(len(keys)), inverse, records[name])
    out["min"] = _gathered(np.minimum, np.full(len(keys), np.inf), inverse, records["min"])
    out["max"] = _gathered(np.maximum, np.full(len(keys), -np.inf), inverse, records["max"])
    return _by_owner(keys // 256, out)


def _merged_bins(owner: Ints, records: npt.NDArray[Any], owners: int) -> dict[int, bytes]:
    if not len(records):
        return {}
    metric, index = records["metric"].astype(np.int64), records["bin"].astype(np.int64)
    metrics, first, last = int(metric.max()) + 1, int(index.min()), int(index.max())
    width = last - first + 1
    if owners * metrics * width > _PLACES_A_RECORD * len(records):
        within = metric * 2**16 + (index - ZERO)
        keys, inverse = np.unique(owner * 2**24 + within, return_inverse=True)
        n = _gathered(np.add, np.zeros(len(keys), np.int64), inverse, records["n"])
        return _by_owner(keys // 2**24, _bin_records(keys % 2**24, n))
    # A dense array with an element for every possible bin: faster than sorting if bins repeat.
    every = np.zeros(owners * metrics * width, np.int64)
    _gathered(np.add, every, (owner * metrics + metric) * width + (index - first), records["n"])
    keys = np.flatnonzero(every)
    group, place = np.divmod(keys, width)
    owner, metric = np.divmod(group, metrics)
    return _by_owner(owner, _bin_records(metric * 2**16 + (place + first - ZERO), every[keys]))
