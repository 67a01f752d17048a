"""Split the cost of a verify step into the target's pass and the draft tokens."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from evals.evidence.columns import FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """Seconds of one verify step: t_verify + k·t_draft."""

    verify_s: float
    draft_s: float

    def step_s(self, k: int) -> float:
        """Return the seconds of a step that drafts k tokens."""
        return self.verify_s + k * self.draft_s


def split(steps: FloatColumn, step_s: FloatColumn) -> StepCost | None:
    """Fit t_verify and t_draft, both at least 0, to groups of steps, group i of length i + 1.

    Least squares, weighted by steps. `None` with fewer than two draft lengths, since one length
    cannot separate the target's pass from the drafts.
    """
    groups = np.flatnonzero(steps > 0)
    if len(groups) < 2:
        return None
    weight = np.sqrt(steps[groups])
    design = np.column_stack([weight, weight * (groups + 1)])
    (verify_s, draft_s), _ = nnls(design, weight * step_s[groups])
    return StepCost(verify_s=float(verify_s), draft_s=float(draft_s))
