"""Prepare the evidence for judging: derive what the policy declares, and drop the warm-up."""

from dataclasses import replace

import numpy as np

from evals.errors import EvidenceError
from evals.evidence.columns import Evidence
from evals.gate.derived import with_derived
from evals.policy import Policy


def prepared(evidence: Evidence, policy: Policy) -> Evidence:
    """Return the evidence that the policy judges; raises `EvidenceError`."""
    return after_warmup(with_derived(evidence, policy), policy.sampling.warmup_drop)


def after_warmup(evidence: Evidence, count: int) -> Evidence:
    """Return the evidence without the `count` pairs that started first, whatever their values.

    A pair starts with its earlier side; ties go by prompt and repeat. Raises `EvidenceError` if
    nothing would be left.
    """
    if count == 0 or len(evidence) == 0:
        return evidence
    if count >= len(evidence):
        raise EvidenceError(
            f"pairs: the policy drops {count} as warm-up and there are {len(evidence)}; "
            "wanted more pairs, or a smaller sampling.warmup_drop"
        )
    kept = np.ones(len(evidence), dtype=np.bool_)
    kept[np.argsort(evidence.started_unix_ns, kind="stable")[:count]] = False
    dropped = {cohort: int((evidence.scope(cohort) & ~kept).sum()) for cohort in evidence.cohorts}
    workload = {name: n - dropped.get(name, 0) for name, n in evidence.workload.items()}
    return replace(evidence.take(kept), workload=workload)
