"""The cells that a policy makes for a rollout, and the minimum pairs of each."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypedDict

from collector.nouns import counted
from evals.errors import PolicyError
from evals.evidence.applicability import Applicability
from evals.evidence.columns import BoolColumn, Evidence
from evals.gate.stray import stray_cohorts
from evals.policy import Policy
from evals.policy.rules import METRICS, Metric, Rule
from evals.stats import (
    Bound,
    hall,
    log_ratio,
    quantile_ratio,
    rate_difference,
    ratio_of_sums,
    score_difference,
    tango,
    welch,
)

MIN_LOG_RATIO_N = 30
MIN_MEAN_SCORE_N = 150
MIN_UNPAIRED_MEAN_SCORE_N = 200
MIN_SUMS_N = 100


class Margin(TypedDict):
    """The margin that a method's limits are held against."""

    margin: float
    bound: Bound
    confidence: float
    """Of each limit, one-sided."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric in one scope, against one margin."""

    rule: Rule
    cohort: str | None
    """`None`: all pairs."""
    min_n: int
    """Minimum pairs, or answers per arm, for the cell to decide."""
    paired: bool = True

    @property
    def metric(self) -> Metric:
        """The metric's definition."""
        return METRICS[self.rule.metric]

    @property
    def method(self) -> str:
        """Name and version of the method that judges the cell."""
        paired, unpaired = _METHODS.get(self.rule.stat, (quantile_ratio.METHOD,) * 2)
        return paired if self.paired else unpaired

    @property
    def is_ratio(self) -> bool:
        """Whether the statistic is a ratio candidate/baseline, not a difference."""
        return self.rule.stat.endswith("_ratio")

    def margin_at(self, confidence: float) -> Margin:
        """Return the cell's margin, with limits at this confidence."""
        return {"margin": self.rule.margin, "bound": self.rule.bound, "confidence": confidence}

    @property
    def chain(self) -> tuple[str, str, str | None, str, float]:
        """Key of the cells that differ only in their margin; Holm counts a chain once."""
        rule = self.rule
        return (rule.metric, rule.stat, self.cohort, rule.bound, rule.pass_at)

    @property
    def unit(self) -> str:
        """The unit of n: pairs, or answers of the arm that has fewer."""
        return "pairs" if self.paired else "answers an arm"

    def counted(self, n: int, more: str = "") -> str:
        """Return n with its unit, such as `1 pair`; `more` stands between them."""
        one = "pair" if self.paired else "answer an arm"
        return counted(n, more + one, more + self.unit)


_METHODS = {
    "diff": (tango.METHOD, score_difference.METHOD),
    "mean_diff": (hall.METHOD, welch.METHOD),
    "geomean_ratio": (log_ratio.METHOD, welch.METHOD_RATIO),
    "mean_ratio": (ratio_of_sums.METHOD, ratio_of_sums.METHOD),
    "rate_diff": (rate_difference.METHOD, rate_difference.METHOD),
}


def plan(evidence: Evidence, policy: Policy) -> tuple[Cell, ...]:
    """Return the policy's cells for this evidence, in the policy's order.

    A rule of scope `cohort` without a list makes a cell for each cohort, of the pairs or of the
    registered workload, in which its metric applies or may apply; stray cohorts get none. If there
    is no such cohort, it makes one cell over all pairs, so that missing evidence is visible.
    """
    if not any(rule.role == "prove" for rule in policy.rules):
        raise PolicyError(f"{policy.name}: wanted at least one prove rule; nothing could pass")
    aside = {one.cohort for one in stray_cohorts(evidence, policy)}
    return tuple(
        Cell(rule, cohort, least_pairs(rule, cohort, policy), policy.paired)
        for rule in policy.rules
        for cohort in _scopes(rule, evidence, aside)
    )


def quantile_of(stat: str) -> float:
    """Return the quantile that a stat such as `p95_ratio` names."""
    return int(stat.removeprefix("p").removesuffix("_ratio")) / 100


def _scopes(rule: Rule, evidence: Evidence, aside: Collection[str]) -> tuple[str | None, ...]:
    if rule.scope == "pooled":
        return (None,)
    if rule.cohorts is not None:
        return rule.cohorts
    if not evidence.all_cohorts:
        return (None,)
    named = sorted({*evidence.cohorts, *evidence.workload})
    bands = () if evidence.bands is None else evidence.bands.names
    planned = tuple(cohort for cohort in (*named, *bands) if cohort not in aside)
    if METRICS[rule.metric].kind != "score":
        return planned
    found = evidence.applicability(rule.metric)
    if not found.owed.any():
        return (None,)
    return tuple(c for c in planned if _may_concern(found, evidence.scope(c))) or (None,)


def _may_concern(found: Applicability, scope: BoolColumn) -> bool:
    """Return whether a metric applies, or may apply, in a scope; of one without pairs it may."""
    return not scope.any() or bool(((found.owed | found.unsure) & scope).any())


def least_pairs(rule: Rule, cohort: str | None, policy: Policy) -> int:
    """Return the minimum pairs, or answers per arm, for a rule to decide in a scope."""
    floor = policy.min_n if cohort is not None else 1
    if rule.stat == "mean_diff" and not policy.paired:
        floor = max(floor, MIN_UNPAIRED_MEAN_SCORE_N)
    return max(floor, _method_min_n(rule, policy.alpha_pass))


def _method_min_n(rule: Rule, alpha: float) -> int:
    """Return the fewest pairs at which the method can pass, or is known to hold its level."""
    if rule.stat == "geomean_ratio":
        return MIN_LOG_RATIO_N
    if rule.stat in ("mean_ratio", "rate_diff"):
        return MIN_SUMS_N
    if rule.stat == "mean_diff":
        return MIN_MEAN_SCORE_N
    if rule.stat == "diff":
        # At margin 0 (guards alone) nothing can be proved, and a failure takes a sign test's n.
        unlucky = 1 - abs(rule.margin) if rule.margin else 0.5
        return math.ceil(math.log(alpha) / math.log(unlucky))
    return quantile_ratio.minimum_n(quantile_of(rule.stat), 1 - alpha)
