"""Exact tests of whether marks are spread over a sequence as by chance."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, fisher_exact, mannwhitneyu

Flags = NDArray[np.bool_]
_EXACT_UP_TO = 100
"""Elements up to which the rank test is exact; beyond, the normal law is."""


def order_p(marks: Flags) -> float | None:
    """Return the two-sided p value of "the marked elements have no place in the sequence".

    The Mann-Whitney test of the marked places against the others: exact if the elements are
    exchangeable. `None` if no element, or every element, is marked.
    Source: H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics 18 (1947) 50-60.
    """
    if not marks.any() or marks.all():
        return None
    places = np.arange(len(marks))
    method = "exact" if len(marks) <= _EXACT_UP_TO else "asymptotic"
    return float(mannwhitneyu(places[marks], places[~marks], method=method).pvalue)


def group_p(marks: Flags, group: Flags) -> float | None:
    """Return the two-sided p value of "marks are as frequent in the group as outside it".

    Fisher's exact test. `None` if the group has no element, or every one.
    Source: R. A. Fisher, Statistical Methods for Research Workers (1934), section 21.02.
    """
    if not group.any() or group.all():
        return None
    table = [[int((marks & rows).sum()), int((~marks & rows).sum())] for rows in (group, ~group)]
    return float(fisher_exact(table).pvalue)


def combined_p(ps: Sequence[float | None]) -> float | None:
    """Return the p value of independent tests together: chi-square of -2 times their logarithms.

    Conservative for discrete tests. `None` without any p value.
    Source: R. A. Fisher, Statistical Methods for Research Workers (1934), section 21.1.
    """
    known = [p for p in ps if p is not None]
    return float(chi2.sf(-2 * np.log(known).sum(), 2 * len(known))) if known else None
