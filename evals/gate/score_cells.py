"""Cells of scored metrics, and of failed or missing answers."""

import numpy as np

from collector.contract import Reason
from evals.evidence import BoolColumn, Counts, Evidence, FloatColumn
from evals.gate.cells import Cell
from evals.gate.clusters import by_prompt, clusters, count, share_difference
from evals.gate.measured import (
    Measurement,
    Obstacle,
    insufficient,
    measured,
    too_few,
    unaccounted,
)
from evals.policy import Policy
from evals.quality import used_in
from evals.stats import Insufficient, Interval
from evals.stats.hall import mean_difference

MAX_UNSCORED_SHARE = 0.05
"""Share of pairs with no score on either side, in cohorts that have some, above which a score's
cell decides nothing: an evaluation that stopped half-way looks like that."""


def measure_failures(
    cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy
) -> Measurement:
    """Compare the shares of answers that failed or never arrived."""
    baseline = ~evidence.baseline.answered[scope]
    candidate = ~evidence.candidate.answered[scope]
    n, prompts = int(scope.sum()), clusters(evidence, scope)
    interval = share_difference(candidate, baseline, prompts, cell, policy)
    return measured(interval, n, prompts, too_few(cell, n, prompts))


def measure_scores(
    cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy
) -> Measurement:
    """Compare scores; a pair with one score is held to the worst case for either decision."""
    scores = evidence.scores(cell.rule.metric)
    rows = scope & scores.applicable
    baseline, candidate = scores.baseline, scores.candidate
    both = rows & ~np.isnan(baseline) & ~np.isnan(candidate)
    n, prompts = int(both.sum()), clusters(evidence, both)
    if n == 0:
        words = "no pair has a score on both sides; run `draftgate evaluate` first"
        return Measurement(n=0, prompts=0, obstacle=Obstacle(Reason.MISSING, words, cell.min_n))
    incomplete = int((scope & ~evidence.complete).sum())
    obstacle = (
        unscored(cell.rule.metric, evidence, scope)
        or unaccounted(incomplete, policy, "incomplete pairs")
        or nothing_at_stake(cell, baseline[both])
        or too_few(cell, n, prompts)
    )

    def limits(rows: BoolColumn, unknown: tuple[float, float]) -> Interval | Insufficient:
        b = np.where(np.isnan(baseline), unknown[0], baseline)[rows]
        c = np.where(np.isnan(candidate), unknown[1], candidate)[rows]
        return _score_limits(cell, b, c, evidence.prompts[rows], policy)

    estimate, worst, best = limits(both, (0, 0)), limits(rows, (1, 0)), limits(rows, (0, 1))
    if isinstance(estimate, Insufficient):
        return insufficient(estimate, n, prompts, obstacle)
    if isinstance(worst, Insufficient) or isinstance(best, Insufficient):
        return Measurement(n=n, prompts=prompts, obstacle=obstacle)
    return Measurement(
        n=n,
        prompts=prompts,
        interval=Interval(
            estimate=estimate.estimate,
            lower=worst.lower,
            upper=best.upper,
            p_fail=best.p_fail,
            n=n,
            method=estimate.method,
        ),
        p_pass=1 - worst.p_fail,
        obstacle=obstacle,
    )


def unscored(metric: str, evidence: Evidence, scope: BoolColumn) -> Obstacle | None:
    """Refuse to judge by the few pairs that have scores where others of their cohort have none."""
    in_use = scope & evidence.complete & used_in(evidence, metric)
    without = int((in_use & ~evidence.scores(metric).applicable).sum())
    if without <= MAX_UNSCORED_SHARE * int(in_use.sum()):
        return None
    words = (
        f"{without} of {int(in_use.sum())} pairs have no score on either side; run "
        "`draftgate evaluate`, or give prompts that cannot be scored a cohort of their own"
    )
    return Obstacle(Reason.MISSING, words)


def nothing_at_stake(cell: Cell, baseline: FloatColumn) -> Obstacle | None:
    """Refuse to compare where even a candidate that is worth nothing would be within the margin.

    A baseline that never passes has nothing to lose: a broken reference, evaluator or `pass_at`
    looks like that, and would pass any candidate.
    """
    shares = cell.rule.stat == "diff"
    values = (baseline >= cell.rule.pass_at) if shares else baseline
    if float(values.mean()) > abs(cell.rule.margin):
        return None
    seen = (
        f"passes in {int(values.sum())} of {len(values)} {cell.unit}"
        if shares
        else f"has a mean score of {float(values.mean()):.3f}"
    )
    words = (
        f"the baseline {seen}, so that a candidate without any success would be within the margin; "
        "mend references, evaluator or `pass_at`, or narrow the margin"
    )
    return Obstacle(Reason.MISSING, words)


def _score_limits(
    cell: Cell,
    baseline: FloatColumn,
    candidate: FloatColumn,
    prompts: Counts,
    policy: Policy,
) -> Interval | Insufficient:
    if cell.rule.stat == "diff":
        pass_at = cell.rule.pass_at
        n = count(prompts)
        return share_difference(candidate >= pass_at, baseline >= pass_at, n, cell, policy)
    return mean_difference(
        by_prompt(candidate - baseline, prompts),
        margin=cell.rule.margin,
        bound=cell.rule.bound,
        confidence=1 - policy.alpha_pass,
    )
