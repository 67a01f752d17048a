"""The A/A control: a rollout of two equal arms, in which the gate must find no difference."""

from collections.abc import Sequence
from dataclasses import replace

from collector.contract import Reason
from evals.evidence.columns import Evidence
from evals.gate.cells import Cell
from evals.gate.measured import Obstacle
from evals.gate.measurement import measure
from evals.policy import Policy
from evals.stats.holm import adjusted

_LEVEL = 0.05


def control_obstacles(
    cells: Sequence[Cell], control: Evidence | None, policy: Policy
) -> list[Obstacle | None]:
    """Return, for each cell, why its control prevents judging it; `None` if it does not.

    A control is quiet in a cell if its two-sided p value against no difference, Holm-corrected over
    all cells, is above .05. If the policy requires a control, one that is absent, or empty in the
    cell, is as bad as one that is not quiet.
    """
    required = policy.validity.aa_control == "required"
    if control is None:
        words = "the policy requires an A/A control; name its rollout with `--control`"
        return [Obstacle(Reason.AA, words) if required else None] * len(cells)
    found = [_p_of_difference(cell, control, policy) for cell in cells]
    return [
        _obstacle(p, required=required and measured is None)
        for measured, p in zip(found, adjusted(found), strict=True)
    ]


def _p_of_difference(cell: Cell, control: Evidence, policy: Policy) -> float | None:
    null = 1.0 if cell.rule.stat.endswith("_ratio") else 0.0
    at_null = replace(cell, rule=replace(cell.rule, margin=null))
    measured = measure(at_null, control, policy)
    if measured.interval is None:
        return None
    return min(1.0, 2 * min(measured.interval.p_fail, measured.p_pass))


def _obstacle(p: float | None, *, required: bool) -> Obstacle | None:
    if required:
        return Obstacle(Reason.AA, "the A/A control has nothing to show for it")
    if p is None or p > _LEVEL:
        return None
    words = f"two equal arms differ in it too, in the A/A control (p = {p:.1g})"
    return Obstacle(Reason.AA, words, bars_harm=True)
