"""Boosted trees as plain arrays, evaluated for many rows at once."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_LEAVES = 16
_ROWS = 256
"""Rows evaluated at once, which bounds the memory for long texts."""


class _Splits(NamedTuple):
    """All splits in the trees' order, for evaluation with bit masks."""

    feature: NDArray[np.int32]
    limit: NDArray[np.float64]
    remaining: NDArray[np.uint16]
    """Leaves still reachable if the row goes right: one bit per leaf, the leftmost lowest."""
    starts: NDArray[np.int64]
    """Index of each tree's first split."""
    values: NDArray[np.float64]
    """Leaf values, padded to `_MAX_LEAVES` per tree."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Binary trees, with one array per property of all nodes; a leaf is its own child.

    A row goes left if its feature is at most the node's limit. The prediction, in log-odds, is
    `base` plus the values of the leaves that the row reaches.
    """

    feature: NDArray[np.int32]
    limit: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    roots: NDArray[np.int32]
    base: float
    _splits: _Splits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare the splits; raises `ValueError` if a tree has too many leaves."""
        object.__setattr__(self, "_splits", _splits_of(self))

    def log_odds(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each row's log-odds."""
        parts = [self._log_odds(rows[at : at + _ROWS]) for at in range(0, len(rows), _ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _log_odds(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        # Every right turn masks out the leaves to its left. The lowest bit that remains in a tree
        # is the leaf that the row reaches. Source: Lucchese et al., QuickScorer, SIGIR 2015.
        splits = self._splits
        goes_left = np.take(rows, splits.feature, axis=1) <= splits.limit
        remaining = np.where(goes_left, np.uint16(0xFFFF), splits.remaining)
        left_over = np.bitwise_and.reduceat(remaining, splits.starts, axis=1)
        leaf = np.bitwise_count((left_over & -left_over) - np.uint16(1))
        places = np.arange(0, len(splits.values), _MAX_LEAVES) + leaf
        found = self.base + splits.values[places].sum(axis=1)
        return np.asarray(found, dtype=np.float64)


def _splits_of(forest: Forest) -> _Splits:
    left, right = forest.left.tolist(), forest.right.tolist()
    nodes, remaining, starts = list[int](), list[int](), list[int]()
    values = np.zeros((len(forest.roots), _MAX_LEAVES))
    for tree, root in enumerate(forest.roots.tolist()):
        starts.append(len(nodes))
        leaves = list[int]()
        if left[root] == root:  # a tree of one leaf gets a split that masks nothing
            nodes.append(root)
            remaining.append(0xFFFF)
        _walk(root, (left, right), leaves, (nodes, remaining))
        if len(leaves) > _MAX_LEAVES:
            raise ValueError(f"a tree of {len(leaves)} leaves; wanted at most {_MAX_LEAVES}")
        values[tree, : len(leaves)] = forest.value[leaves]
    return _Splits(
        forest.feature[nodes],
        forest.limit[nodes],
        np.array(remaining, dtype=np.uint16),
        np.array(starts),
        values.ravel(),
    )


def _walk(
    node: int,
    ways: tuple[list[int], list[int]],
    leaves: list[int],
    splits: tuple[list[int], list[int]],
) -> None:
    """Append the subtree's leaves from left to right, and its splits with their masks."""
    left, right = ways[0][node], ways[1][node]
    if left == node:
        leaves.append(node)
        return
    first = len(leaves)
    _walk(left, ways, leaves, splits)
    cut = sum(1 << leaf for leaf in range(first, len(leaves)))
    splits[0].append(node)
    splits[1].append(0xFFFF & ~cut)
    _walk(right, ways, leaves, splits)
