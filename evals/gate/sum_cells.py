"""Cells of output tokens, throughput and cost; their statistic is a ratio of sums."""

import math
from dataclasses import replace

import numpy as np

from collector.contract import Reason
from evals.evidence.columns import BoolColumn, Evidence, FloatColumn, Side
from evals.gate.answer_costs import hourly_prices
from evals.gate.arrangement import of_pairs
from evals.gate.cells import Cell
from evals.gate.clusters import clusters
from evals.gate.launch_limits import widened_by_launches
from evals.gate.measured import (
    Measurement,
    Obstacle,
    at_worst,
    measured,
    too_few,
    unaccounted,
    unbounded,
    unknown_decide,
)
from evals.gate.paired_limits import geomean_limits
from evals.policy import Policy
from evals.policy.sections import HourlyPrices
from evals.stats import Insufficient, Interval
from evals.stats.ratio_of_sums import ArmSums, EffectOf, ratio_of_sums


def measure_sums(cell: Cell, evidence: Evidence, scope: BoolColumn, policy: Policy) -> Measurement:
    """Compare tokens, tokens per second or cost per token of the pairs that both arms answered."""
    sides = (evidence.candidate, evidence.baseline)
    answered = scope & evidence.baseline.answered & evidence.candidate.answered
    known = answered & counted(cell, sides[0]) & counted(cell, sides[1])
    n, prompts = int(known.sum()), clusters(evidence, known)
    unpriced = without_price(cell, evidence, policy)
    if n == 0 or unpriced is not None:
        stop = unpriced or uncounted(cell, int(answered.sum()))
        return Measurement(n=n, prompts=prompts, obstacle=stop)
    lost = int((scope & ~answered).sum())
    obstacle = unaccounted(lost, policy)
    held = found = _limits(cell, evidence, known, policy)
    hidden = None
    if (answered & ~known).any():
        worst, best = (
            _limits(cell, _with_sides(evidence, filled(cell, sides, (known, known), worst=bad)),
                    answered, policy)
            for bad in (True, False)
        )  # fmt: skip
        held = at_worst(found, worst, best, bound=cell.rule.bound)
        words = _unknown_words(cell, int((answered & ~known).sum()), int(answered.sum()))
        hidden = unbounded(words, answered, known) or unknown_decide(cell, found, held, words)
    return measured(held, n, prompts, obstacle or hidden or too_few(cell, n, prompts))


def filled(
    cell: Cell, sides: tuple[Side, Side], known: tuple[BoolColumn, BoolColumn], *, worst: bool
) -> tuple[Side, Side]:
    """Return candidate and baseline with every unknown number at the worst, or best, of its arm.

    Tokens and seconds have no worst case, so the few unknown ones are set to the arm's observed
    maximum or minimum.
    """
    grows = worst == (cell.rule.bound == "max")  # towards a larger ratio
    candidate = _at_extreme(cell, sides[0], known[0], larger=grows)
    return candidate, _at_extreme(cell, sides[1], known[1], larger=not grows)


def _at_extreme(cell: Cell, side: Side, known: BoolColumn, *, larger: bool) -> Side:
    """Return a side with unknown numbers set so that the cell's value is largest, or smallest."""
    has = counted(cell, side)

    def extreme(values: FloatColumn, *, most: bool) -> FloatColumn:
        seen = values[known]
        return np.where(has, values, seen.max() if most else seen.min())

    if cell.metric.kind == "tokens":
        return replace(side, output_tokens=extreme(side.output_tokens, most=larger))
    slower = larger == (cell.metric.kind == "cost")
    return replace(
        side,
        seconds={**side.seconds, "e2e": extreme(side.seconds["e2e"], most=slower)},
        output_tokens=extreme(side.output_tokens, most=not slower),
    )


def _with_sides(evidence: Evidence, sides: tuple[Side, Side]) -> Evidence:
    return replace(evidence, candidate=sides[0], baseline=sides[1])


def without_price(cell: Cell, evidence: Evidence, policy: Policy) -> Obstacle | None:
    """Return the obstacle that a cost needs prices, if neither policy nor answers have them."""
    if cell.metric.kind != "cost" or _prices(evidence, policy) is not None:
        return None
    words = "the policy gives no `prices`, and the answers carry no price of an hour for each arm"
    return Obstacle(Reason.MISSING, words)


def uncounted(cell: Cell, answered: int) -> Obstacle:
    """Return the obstacle that no answer has the numbers that the cell needs."""
    if answered == 0:
        return Obstacle(Reason.MISSING, "no pair was answered by both arms", cell.min_n)
    words = _unknown_words(cell, answered, answered)
    return Obstacle(Reason.MISSING, words)


def _unknown_words(cell: Cell, unknown: int, answered: int) -> str:
    words = f"{unknown} of {answered} answered {cell.unit} have no count of tokens"
    return f"{words} or no usable time" if cell.metric.timed else words


def counted(cell: Cell, side: Side) -> BoolColumn:
    """Return which of a side's own answers have the numbers that the cell needs."""
    tokens = side.answered & ~side.fallback & (side.output_tokens > 0)
    return tokens & (side.latency_s("e2e") > 0) if cell.metric.timed else tokens


def arm_of(cell: Cell, side: Side, rows: BoolColumn, effect_of: EffectOf, price: float) -> ArmSums:
    """Return one arm's sums: tokens, tokens per second, or the cost of its seconds per token."""
    tokens = side.output_tokens[rows]
    if cell.metric.kind == "tokens":
        return ArmSums(tokens, None, effect_of)
    if cell.metric.kind == "throughput":
        return ArmSums(tokens, side.seconds["e2e"][rows], effect_of)
    return ArmSums(side.seconds["e2e"][rows], tokens, effect_of, price)


def prices_of(evidence: Evidence, policy: Policy) -> HourlyPrices:
    """Return the policy's prices, else the recorded ones, else equal ones, as tokens need none."""
    equal = HourlyPrices(baseline_per_hour=1.0, candidate_per_hour=1.0)
    return _prices(evidence, policy) or equal


def _prices(evidence: Evidence, policy: Policy) -> HourlyPrices | None:
    return policy.prices or hourly_prices(evidence)


def _limits(
    cell: Cell, evidence: Evidence, known: BoolColumn, policy: Policy
) -> Interval | Insufficient:
    rule, prices = cell.rule, prices_of(evidence, policy)
    pairs = of_pairs(evidence, known, policy, timed=cell.metric.timed)
    if rule.stat == "geomean_ratio":
        logs = np.log(_tokens(evidence.candidate, known) / _tokens(evidence.baseline, known))
        return geomean_limits(logs, pairs, cell, policy)
    candidate = arm_of(cell, evidence.candidate, known, pairs.effect, prices.candidate_per_hour)
    baseline = arm_of(cell, evidence.baseline, known, pairs.effect, prices.baseline_per_hour)
    above = [x for x in (candidate.numerator, baseline.denominator) if x is not None]
    below = [x for x in (candidate.denominator, baseline.numerator) if x is not None]
    found = ratio_of_sums(
        above,
        below,
        effect_of=pairs.effect,
        factor=candidate.factor / baseline.factor,
        **cell.margin_at(1 - policy.alpha_pass),
    )

    def log_ratio(rows: BoolColumn) -> float:
        return log_rate(candidate, rows) - log_rate(baseline, rows)

    return widened_by_launches(found, log_ratio, pairs.launches, cell, policy)


def log_rate(arm: ArmSums, rows: BoolColumn) -> float:
    """Return the logarithm of an arm's factor and sums over its values in the mask."""
    below = 1.0 if arm.denominator is None else float(arm.denominator[rows].sum())
    return math.log(arm.factor * float(arm.numerator[rows].sum()) / below)


def _tokens(side: Side, rows: BoolColumn) -> FloatColumn:
    return side.output_tokens[rows]
