"""Test whether requests reached the arms in the design's shares."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2, chi2_contingency


def sample_ratio_p(candidate: int, baseline: int, *, split: float = 0.5) -> float | None:
    """Return the χ² p value of the counts against a candidate's share of `split`.

    χ² = Σ (O − E)²/E with one degree of freedom. `None` where n = 0; n = 1 gives p = .32 at an
    even split.

    Source: A. Fabijan et al., Diagnosing sample ratio mismatch in online controlled experiments,
    KDD 2019, 2156–2164.
    """
    if not 0 < split < 1:
        raise ValueError(f"wanted a share between 0 and 1, got {split}")
    n = candidate + baseline
    if n == 0:
        return None
    excess = candidate - n * split
    return float(chi2.sf(excess**2 / (n * split * (1 - split)), 1))


def mix_p(candidate: Sequence[int], baseline: Sequence[int]) -> float | None:
    """Return the χ² p value of "both arms have the same mix" of counts by cohort.

    `None` with fewer than two cohorts or an empty arm. Pearson's test of homogeneity
    (`scipy.stats.chi2_contingency`, without Yates's correction).
    """
    table = np.array([candidate, baseline])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or (table.sum(axis=1) == 0).any():
        return None
    return float(chi2_contingency(table, correction=False).pvalue)
