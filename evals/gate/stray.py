"""Cohorts of a few stray pairs: named, judged in the pool alone, and holding nothing up."""

import numpy as np

from collector.contract import SetAside
from evals.evidence import Evidence
from evals.policy import Policy

_MOST = 0.05
"""Share of all pairs above which they are no strays: many small cohorts are the traffic itself."""


def stray_cohorts(evidence: Evidence, policy: Policy) -> tuple[SetAside, ...]:
    """Return the cohorts to set aside: of few pairs, and named by neither policy nor workload.

    If together they have more than a twentieth of the pairs, none is.
    """
    listed = {cohort for rule in policy.rules for cohort in rule.cohorts or ()}
    counts = np.bincount(evidence.cohort_of + 1, minlength=len(evidence.cohorts) + 1)[1:]
    found = tuple(
        SetAside(cohort=cohort, pairs=int(count))
        for cohort, count in zip(evidence.cohorts, counts, strict=True)
        if 0 < count < policy.set_aside_below
        and cohort not in listed
        and cohort not in evidence.workload
    )
    return found if sum(one.pairs for one in found) <= _MOST * len(evidence) else ()
