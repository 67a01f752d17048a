"""The difference between the slow requests and the rest, by every recorded dimension."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evals.profiles import distributions, request_dimensions
from evals.profiles.request_dimensions import Dimension, Value
from evals.stats import Interval
from evals.stats.percentiles import ordered_percentile
from evals.stats.score_difference import unpaired_difference

SLOWEST = 0.1
"""Share of the requests that are slow if no duration is chosen."""
FEWEST_EXPECTED = 5
"""A value is compared if both groups should have this many requests with it, and without it."""
ERROR = 0.05
"""Chance that any dimension is named although the groups differ in none."""
FIELDS = (*request_dimensions.FIELDS, "end_unix_ns", "ttft_s", "tpot_s")
"""The columns of `Client.generation_batches` that `compare` reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareDifference:
    """The shares of slow requests and of the rest that have one value of a dimension."""

    dimension: str
    value: Value
    slow: int
    rest: int
    limits: Interval
    """Of the share of the slow requests − the share of the rest."""

    @property
    def certain(self) -> float:
        """The smallest size of the difference within the limits; 0 if they contain 0."""
        return max(self.limits.lower or 0.0, -(self.limits.upper or 0.0), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowComparison:
    """Slow requests against the rest of the same requests."""

    threshold_s: float
    """Requests that took at least this long are slow."""
    slow: int
    rest: int
    unmeasured: int
    """Requests without the chosen time, which are in neither group."""
    differ: tuple[ShareDifference, ...]
    """The dimensions that differ, the surest difference first.

    Each by the value that is surest to be more frequent among slow requests; else, less frequent.
    """
    alike: tuple[str, ...]
    """The dimensions in which no difference was found."""
    too_few: tuple[str, ...]
    """The dimensions whose values have too few requests to compare."""


class _Groups(NamedTuple):
    dimension: Dimension
    slow: NDArray[np.int64]
    """Slow requests by value."""
    rest: NDArray[np.int64]


def compare(table: pa.Table, metric: str, at_least_s: float | None = None) -> SlowComparison | None:
    """Compare requests that took `at_least_s`, else the slowest tenth, with the rest.

    `metric` is `e2e_s`, `ttft_s` or `tpot_s`; `None` if no request has it. Limits are Miettinen and
    Nurminen's, two-sided, at 1 − `ERROR`/m for m compared values (Bonferroni), and take requests as
    independent. A value is compared if each of the four expected counts is at least
    `FEWEST_EXPECTED` (W. Cochran, Biometrics 10 (1954) 417-451), which does not depend on which
    requests are slow.
    """
    times = distributions.times(table, metric)
    measured = ~np.isnan(times)
    if not measured.any():
        return None
    threshold_s = at_least_s or ordered_percentile(np.sort(times[measured]), 1 - SLOWEST)
    slow = times[measured] >= threshold_s
    kept = table.filter(pa.array(measured))
    groups = [_split(one, slow) for one in request_dimensions.dimensions(kept)]
    found = list(_compared(groups))
    best = [max(of, key=_telling) for of in found if of]
    return SlowComparison(
        threshold_s=threshold_s,
        slow=int(slow.sum()),
        rest=int((~slow).sum()),
        unmeasured=int((~measured).sum()),
        differ=tuple(sorted((o for o in best if o.certain), key=lambda o: -o.certain)),
        alike=tuple(one.dimension for one in best if not one.certain),
        too_few=tuple(g.dimension.name for g, of in zip(groups, found, strict=True) if not of),
    )


def _telling(one: ShareDifference) -> tuple[bool, float]:
    return (one.limits.lower or 0.0) > 0, one.certain


def _split(dimension: Dimension, slow: NDArray[np.bool_]) -> _Groups:
    values = len(dimension.values)
    counted = (np.bincount(dimension.codes[of], minlength=values) for of in (slow, ~slow))
    return _Groups(dimension, *counted)


def _compared(groups: Iterable[_Groups]) -> Iterator[list[ShareDifference]]:
    places = [(one, _comparable(one)) for one in groups]
    m = sum(len(of) for _, of in places)
    for one, of in places:
        yield list(_differences(one, of, 1 - ERROR / (2 * m) if m else 1.0))


def _comparable(one: _Groups) -> list[int]:
    having = one.slow + one.rest
    total = int(having.sum())
    smaller = min(int(one.slow.sum()), int(one.rest.sum()))
    fewest = smaller * np.minimum(having, total - having) / total
    return [int(place) for place in np.flatnonzero(fewest >= FEWEST_EXPECTED)]


def _differences(
    one: _Groups, places: Iterable[int], confidence: float
) -> Iterator[ShareDifference]:
    slow, rest = int(one.slow.sum()), int(one.rest.sum())
    for place in places:
        having = int(one.slow[place]), int(one.rest[place])
        limits = unpaired_difference(
            (having[0], slow), (having[1], rest), margin=0.0, bound="max", confidence=confidence
        )
        if isinstance(limits, Interval):
            yield ShareDifference(
                dimension=one.dimension.name,
                value=one.dimension.values[place],
                slow=having[0],
                rest=having[1],
                limits=limits,
            )
