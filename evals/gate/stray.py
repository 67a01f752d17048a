"""Stray cohorts of a few pairs: named, judged only in the pool, and no obstacle to a release."""

from collections.abc import Collection, Mapping

import numpy as np

from collector.contract import InputBands, SetAside
from evals.evidence.columns import Evidence
from evals.policy import Policy

_MOST = 0.05
"""Maximum share of all pairs for strays; more small cohorts than that are the traffic itself."""


def stray_cohorts(evidence: Evidence, policy: Policy) -> tuple[SetAside, ...]:
    """Return the cohorts to set aside."""
    counts = np.bincount(evidence.cohort_of + 1, minlength=len(evidence.cohorts) + 1)[1:]
    pairs = {c: int(n) for c, n in zip(evidence.cohorts, counts, strict=True)}
    if evidence.bands is not None and InputBands.UNKNOWN in evidence.bands.names:
        pairs[InputBands.UNKNOWN] = int(evidence.scope(InputBands.UNKNOWN).sum())
    return stray(pairs, len(evidence), evidence.workload, policy)


def stray(
    pairs: Mapping[str, int], in_all: int, workload: Collection[str], policy: Policy
) -> tuple[SetAside, ...]:
    """Return the cohorts of few pairs that neither the policy nor the workload names.

    If together they have more than a twentieth of the pairs, none is.
    """
    listed = {cohort for rule in policy.rules for cohort in rule.cohorts or ()}
    found = tuple(
        SetAside(cohort=cohort, pairs=count)
        for cohort, count in pairs.items()
        if 0 < count < policy.set_aside_below and cohort not in listed and cohort not in workload
    )
    return found if sum(one.pairs for one in found) <= _MOST * in_all else ()
