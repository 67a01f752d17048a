"""Drop the warm-up: the first pairs of a rollout, by the policy's count."""

from dataclasses import replace

import numpy as np

from evals.errors import EvidenceError
from evals.evidence import Evidence


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
