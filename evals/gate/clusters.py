"""Count clusters: repeats of a prompt, and turns of a session, are one."""

import numpy as np

from evals.evidence.columns import BoolColumn, Evidence


def clusters(evidence: Evidence, rows: BoolColumn) -> int:
    """Count the clusters among the rows."""
    return len(np.unique(evidence.prompts[rows]))
