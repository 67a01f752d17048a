"""Count prompts: repeats of one prompt are one cluster."""

import numpy as np

from evals.evidence import BoolColumn, Evidence


def clusters(evidence: Evidence, rows: BoolColumn) -> int:
    """Count the prompts among the rows."""
    prompts = evidence.prompts[rows]
    return int(np.count_nonzero(np.diff(prompts))) + 1 if len(prompts) else 0
