"""Group the launches of the arms' servers into independent ones."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ENOUGH = 3
"""With at least this many independent launches, limits hold over launches; with fewer, only for
these launches."""
_STRADDLES = 0.1
"""Shared pairs tie two launches only if they are at least this share of either launch's pairs: a
run that was stopped and continued has a few pairs with a side before the stop and a side after."""
_SMALL = 0.25
"""A launch with less than this share of the median launch's pairs is joined with its neighbour in
time."""

Counts = NDArray[np.int64]
Names = NDArray[np.object_]
Bools = NDArray[np.bool_]


class ArmLaunches(NamedTuple):
    """The launches that answered one arm's sides of the pairs."""

    launch: Names
    """The launch that answered; None if not recorded."""
    present: Bools


class Launches(NamedTuple):
    """The launches of a rollout."""

    of: Counts
    """Each pair's group of launches, numbered in order of time; groups share no launch."""
    baseline: int
    """Number of the arm's launches."""
    candidate: int
    independent: int
    """Groups in which both arms answered; for split traffic, launches of the arm with fewer."""

    @property
    def enough(self) -> bool:
        """Whether limits can hold over launches."""
        return self.independent >= ENOUGH

    def take(self, rows: Bools) -> "Launches":
        """Return the groups of these pairs, with the whole rollout's counts."""
        return self._replace(of=self.of[rows])


def launches_of(baseline: ArmLaunches, candidate: ArmLaunches, started: Counts) -> Launches | None:
    """Return the launches, `None` unless every answer names the launch that gave it.

    If one launch of the candidate has pairs with several of the baseline, these launches are not
    independent. So groups are the connected components of launches that share pairs, and a group
    of very few pairs is joined with the one before it.
    """
    numbers = [_numbered(arm) for arm in (baseline, candidate)]
    if any((number < 0)[arm.present].any() for number, arm in
           zip(numbers, (baseline, candidate), strict=True)):  # fmt: skip
        return None
    counts = [int(number.max(initial=-1)) + 1 for number in numbers]
    if 0 in counts:
        return None
    both = baseline.present & candidate.present
    group_of = _components(numbers[0][both], numbers[1][both], counts)
    groups = np.where(baseline.present, group_of[numbers[0]], group_of[counts[0] + numbers[1]])
    if not both.any():
        return Launches(_in_order(groups, started), counts[0], counts[1], min(counts))
    groups = _joined(_in_order(groups, started), both)
    return Launches(groups, counts[0], counts[1], len(np.unique(groups[both])))


def _numbered(arm: ArmLaunches) -> Counts:
    """Return the number of each answer's launch; −1 without one."""
    known = arm.present & np.asarray(arm.launch != None, dtype=np.bool_)  # noqa: E711  # elementwise
    numbers = np.full(len(known), -1, dtype=np.int64)
    numbers[known] = np.unique(arm.launch[known].astype(str), return_inverse=True)[1]
    return numbers


def _components(baseline: Counts, candidate: Counts, counts: list[int]) -> Counts:
    """Return the component of each launch, the baseline's first."""
    shared = np.zeros(counts, dtype=np.int64)
    np.add.at(shared, (baseline, candidate), 1)
    strays = (shared < _STRADDLES * shared.sum(axis=1, keepdims=True)) & (
        shared < _STRADDLES * shared.sum(axis=0, keepdims=True)
    )
    one, other = np.nonzero(np.where(strays, 0, shared))
    size = sum(counts)
    edges = coo_array((np.ones(len(one)), (one, counts[0] + other)), shape=(size, size))
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int64)


def _in_order(groups: Counts, started: Counts) -> Counts:
    """Renumber the pairs' groups in the order in which they began."""
    names, number = np.unique(groups, return_inverse=True)
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, number, started)
    return np.asarray(np.argsort(np.argsort(first, kind="stable"))[number], dtype=np.int64)


def _joined(groups: Counts, both: Bools) -> Counts:
    """Join each group of very few pairs with the one before; the first with the second."""
    sizes = np.bincount(groups[both], minlength=int(groups.max()) + 1)
    small = sizes < _SMALL * np.median(sizes[sizes > 0])
    return np.asarray((np.maximum(np.cumsum(~small), 1) - 1)[groups], dtype=np.int64)
