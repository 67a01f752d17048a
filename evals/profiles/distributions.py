"""Distributions for plots: latencies of each arm, and score changes over pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from collector.contract import Arm
from evals.stats.percentiles import ordered_percentile

LEVELS = (*(i / 100 for i in range(1, 100)), 0.995, 0.999)
"""Quantile levels of a curve's points."""
EXACT = "exact sample quantiles, R-7"
DIM = "draftgate.dim."
"""Prefix of the dimensions that an application named itself."""
_CHANGES = 20
"""Bars for score differences from −1 to 1; differences of 0 have a separate bar."""


class Slice(NamedTuple):
    """A filter of generations; `None` does not filter."""

    cohort: str | None = None
    dims: Mapping[str, str] | None = None
    start_unix_ns: int | None = None
    end_unix_ns: int | None = None
    """Exclusive."""
    failed: bool = False
    """Only requests that failed."""
    least_e2e_s: float = 0.0
    dim_part: str = ""
    """Part of the `DIM + name=value` of one of their dimensions, in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Quantiles of one arm, at ascending levels."""

    arm: Arm
    n: int
    levels: tuple[float, ...]
    """The levels beyond which at least one of the n values lies; always with 0.5."""
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceBin:
    """The number of pairs whose score difference is in [low, high]; 0 to 0 for equal scores."""

    low: float
    high: float
    pairs: int


def narrowed(table: pa.Table, wanted: Slice) -> pa.Table:
    """Return the rows of `Client.generation_batches` that are in the slice."""
    keep = pa.array(np.ones(table.num_rows, dtype=bool))
    if wanted.cohort is not None:
        keep = pc.and_(keep, pc.equal(table["cohort"], wanted.cohort))
    if wanted.start_unix_ns is not None:
        keep = pc.and_(keep, pc.greater_equal(table["start_unix_ns"], wanted.start_unix_ns))
    if wanted.end_unix_ns is not None:
        keep = pc.and_(keep, pc.less(table["start_unix_ns"], wanted.end_unix_ns))
    if wanted.failed:
        keep = pc.and_(keep, pc.is_valid(table["error_type"]))
    if wanted.least_e2e_s:
        keep = pc.and_(keep, pa.array(times(table, "e2e_s") >= wanted.least_e2e_s))
    if wanted.dim_part:
        has = [
            any(wanted.dim_part in f"{DIM}{name}={value}".casefold() for name, value in dims or ())
            for dims in table["dims"].to_pylist()
        ]
        keep = pc.and_(keep, pa.array(has, pa.bool_()))
    for name, value in (wanted.dims or {}).items():
        keep = pc.and_(keep, pc.equal(dimension(table, name), value))
    return table.filter(keep)


def dimensions(table: pa.Table) -> dict[str, tuple[str, ...]]:
    """Return the values of each dimension (`draftgate.dim.*`), both by name."""
    found: dict[str, set[str]] = {}
    for chunk in table["dims"].chunks:
        given = pa.table({"name": chunk.keys, "value": chunk.items})
        for entry in given.group_by(["name", "value"]).aggregate([]).to_pylist():
            found.setdefault(entry["name"], set()).add(entry["value"])
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


def dimension(table: pa.Table, name: str) -> pa.Array:
    """Return the values of one dimension, null for rows without it."""
    return pc.map_lookup(table["dims"], pa.scalar(name), "first")


def times(table: pa.Table, metric: str) -> NDArray[np.float64]:
    """Return each row's `ttft_s`, `ttfo_s`, `tpot_s` or `e2e_s`, NaN if it was not measured."""
    if metric == "e2e_s":
        start, end = (table[f"{name}_unix_ns"].to_numpy() for name in ("start", "end"))
        return np.asarray(end - start, dtype=np.float64) / 1e9
    return np.asarray(table[metric].to_numpy(), dtype=np.float64)


def curves(table: pa.Table, metric: str) -> tuple[Curve, ...]:
    """Return the distribution of a time (`times`) of answers that succeeded.

    An arm without a value has no curve.
    """
    good = table.filter(pc.is_null(table["error_type"]))
    found = []
    for arm in Arm:
        side = good.filter(pc.equal(good["arm"], arm.value))
        measured = times(side, metric)
        values = np.sort(measured[~np.isnan(measured)])
        if len(values):
            levels = tuple(q for q in LEVELS if (1 - q) * len(values) >= 1 or q == 0.5)
            at = tuple(ordered_percentile(values, q) for q in levels)
            found.append(Curve(arm=arm, n=len(values), levels=levels, values=at))
    return tuple(found)


def score_changes(pairs: pa.Table, metric: str, cohort: str | None) -> tuple[DifferenceBin, ...]:
    """Return a histogram of score differences, candidate − baseline.

    `pairs` is from `Client.pairs_table`; only pairs with both scores count.
    """
    table = pairs if cohort is None else pairs.filter(pc.equal(pairs["cohort"], cohort))
    names = [f"{arm.value}_score_{metric}" for arm in Arm]
    if not set(names) <= set(table.column_names):
        return ()
    difference = pc.drop_null(pc.subtract(table[names[1]], table[names[0]]))
    values = np.asarray(difference.to_numpy(), dtype=np.float64)
    if not len(values):
        return ()
    counts, edges = np.histogram(values[values != 0], bins=_CHANGES, range=(-1.0, 1.0))
    bars = [
        DifferenceBin(low=float(low), high=float(high), pairs=int(n))
        for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    return (*bars, DifferenceBin(low=0.0, high=0.0, pairs=int((values == 0).sum())))


def metrics_of(pairs: pa.Table) -> tuple[str, ...]:
    """Return the metrics that a table of `Client.pairs_table` has scores of."""
    marker = f"{Arm.BASELINE.value}_score_"
    return tuple(n.removeprefix(marker) for n in pairs.column_names if n.startswith(marker))
