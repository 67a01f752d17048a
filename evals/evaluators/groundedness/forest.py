"""Boosted trees, read from a plain file and evaluated for many rows at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees of two-way splits, one array a property of all nodes; a leaf leads to itself.

    A row goes left where its feature is at most the node's limit. The forest's answer is `base`
    plus the values of the leaves that the row reaches, in log-odds.
    """

    feature: NDArray[np.int32]
    limit: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    roots: NDArray[np.int32]
    base: float
    depth: int

    def log_odds(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each row's log-odds."""
        node = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            goes_left = rows[row, self.feature[node]] <= self.limit[node]
            node = np.where(goes_left, self.left[node], self.right[node])
        return np.asarray(self.base + self.value[node].sum(axis=1), dtype=np.float64)
