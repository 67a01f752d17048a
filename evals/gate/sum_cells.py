"""Cells of output tokens and of cost, whose statistic is a ratio of sums."""

import numpy as np

from collector.contract import Reason
from evals.evidence import BoolColumn, Evidence, FloatColumn, Side
from evals.gate.cells import Cell
from evals.gate.clusters import by_prompt, clusters
from evals.gate.measured import Measurement, Obstacle, measured, too_few, unaccounted
from evals.policy import Policy
from evals.policy_sections import Prices
from evals.stats import Insufficient, Interval
from evals.stats.log_ratio import geometric_mean_ratio
from evals.stats.ratio_of_sums import Arm, ratio_of_sums

MAX_UNKNOWN_SHARE = 0.01
"""Share of answers without the counts or times above which such a cell decides nothing."""


def measure_sums(cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy) -> Measurement:
    """Compare the tokens, or the cost a token, of the pairs that both arms answered."""
    answered = scope & evidence.baseline.answered & evidence.candidate.answered
    known = answered & counted(cell, evidence.baseline) & counted(cell, evidence.candidate)
    n, prompts = int(known.sum()), clusters(evidence, known)
    lost = int((scope & ~answered).sum())
    obstacle = (
        without_price(cell, policy)
        or uncounted(cell, n, int(answered.sum()))
        or unaccounted(lost, policy, "failed or incomplete pairs")
        or too_few(cell, n, prompts)
    )
    if n == 0 or without_price(cell, policy) is not None:
        return Measurement(n=n, prompts=prompts, obstacle=obstacle)
    return measured(_limits(cell, evidence, known, policy), n, prompts, obstacle)


def without_price(cell: Cell, policy: Policy) -> Obstacle | None:
    """Refuse to tell a cost without prices: the time alone is none."""
    if cell.metric.kind != "cost" or policy.prices is not None:
        return None
    return Obstacle(Reason.MISSING, "the policy gives no `prices`")


def uncounted(cell: Cell, known: int, answered: int) -> Obstacle | None:
    """Refuse to judge by part of the answers."""
    if known >= (1 - MAX_UNKNOWN_SHARE) * answered > 0:
        return None
    words = f"{answered - known} of {answered} answered {cell.unit} have no count of tokens"
    if cell.metric.kind == "cost":
        words += " or no usable time"
    return Obstacle(Reason.MISSING, words, None if answered else cell.min_n)


def counted(cell: Cell, side: Side) -> BoolColumn:
    """Say where a side has the numbers that the cell needs."""
    tokens = side.answered & (side.output_tokens > 0)
    return tokens & (side.latency_s("e2e") > 0) if cell.metric.kind == "cost" else tokens


def arm_of(cell: Cell, evidence: Evidence, side: Side, rows: BoolColumn, price: float) -> Arm:
    """Return one arm's sums: tokens, or seconds at the price of a token's worth of them."""
    tokens, prompts = side.output_tokens[rows], evidence.prompts[rows]
    if cell.metric.kind == "tokens":
        return Arm(tokens, None, prompts)
    return Arm(side.e2e_s[rows], tokens, prompts, price)


def prices_of(policy: Policy) -> Prices:
    """Return the policy's prices; equal ones for tokens, which have none."""
    return policy.prices or Prices(baseline_per_hour=1.0, candidate_per_hour=1.0)


def _limits(
    cell: Cell, evidence: Evidence, known: BoolColumn, policy: Policy
) -> Interval | Insufficient:
    rule, confidence, prices = cell.rule, 1 - policy.alpha_pass, prices_of(policy)
    if rule.stat == "geomean_ratio":
        logs = np.log(_tokens(evidence.candidate, known) / _tokens(evidence.baseline, known))
        return geometric_mean_ratio(
            by_prompt(logs, evidence.prompts[known]),
            margin=rule.margin,
            bound=rule.bound,
            confidence=confidence,
        )
    candidate = arm_of(cell, evidence, evidence.candidate, known, prices.candidate_per_hour)
    baseline = arm_of(cell, evidence, evidence.baseline, known, prices.baseline_per_hour)
    above = [x for x in (candidate.numerator, baseline.denominator) if x is not None]
    below = [x for x in (candidate.denominator, baseline.numerator) if x is not None]
    return ratio_of_sums(
        above,
        below,
        clusters=candidate.clusters,
        factor=candidate.factor / baseline.factor,
        margin=rule.margin,
        bound=rule.bound,
        confidence=confidence,
    )


def _tokens(side: Side, rows: BoolColumn) -> FloatColumn:
    return side.output_tokens[rows]
