"""The interaction of two changes: what they do together beyond what each does alone."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

import numpy as np

from collector.client import Client
from collector.columns import Table
from collector.contract import Family, Role
from collector.data_hash import ordered
from evals.evidence.columns import BoolColumn, Evidence, FloatColumn
from evals.evidence.pairs_table import from_table
from evals.gate.arrangement import of_pairs
from evals.gate.cells import MIN_LOG_RATIO_N, MIN_MEAN_SCORE_N, Cell
from evals.gate.paired_limits import geomean_limits
from evals.policy import Policy
from evals.policy.rules import METRICS, Rule
from evals.source import load_pairs
from evals.stats import Insufficient, Interval
from evals.stats.hall import mean_difference
from evals.stats.significant import significant

TIMES = ("e2e", "tpot", "ttft")
DIVERGED = "greedy_divergence"
_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """One metric in one scope, over prompts that the baseline and all three candidates answered.

    Times: the ratio of the combined candidate's time to the product of both single effects, over
    the baseline's. Scores: the combined candidate's difference from the baseline less the sum of
    both single differences. Without an interaction the ratio is 1 and the difference 0.
    """

    arm: str
    """The candidate that makes both changes."""
    parts: tuple[str, str]
    """The candidates that make one of them."""
    cohort: str | None
    """None: all cohorts."""
    metric: str
    unit: str
    """`ratio` or `difference`."""
    n: int
    estimate: float | None = None
    """None if there are too few prompts for limits."""
    lower: float | None = None
    upper: float | None = None
    confidence: float
    """Of each one-sided limit."""
    only_together: int | None = None
    """Prompts that the baseline and both single candidates answer well, and the combined one does
    not; None for times."""
    only_one: tuple[int, int] | None = None
    """Prompts that only the first, or only the second, single candidate does not answer well."""
    examples: tuple[str, ...] = ()
    """Ids of the first prompts of `only_together`."""

    @property
    def is_informative(self) -> bool:
        """Whether it has limits, or a prompt that only one candidate gets wrong."""
        return self.estimate is not None or any((self.only_together, *(self.only_one or ())))


class _Four(NamedTuple):
    """The answers of a baseline and three candidates to the same prompts, row by row."""

    first: Evidence
    second: Evidence
    both: Evidence
    prompts: Sequence[str]

    @property
    def singles(self) -> tuple[Evidence, Evidence]:
        return self.first, self.second


def load_interactions(client: Client, family: Family, policy: Policy) -> tuple[Interaction, ...]:
    """Return the interactions of a family's combined candidates, from the collector's pairs."""
    arms = {arm for combined, parts in family.combined.items() for arm in (combined, *parts)}
    tables = {arm: load_pairs(client, family.rollout_of(arm)) for arm in arms}
    return interactions(tables, family, policy)


def interactions(
    tables: Mapping[str, Table], family: Family, policy: Policy
) -> tuple[Interaction, ...]:
    """Return the interactions of a family's combined candidates; `tables` has the pairs by arm.

    There are none for candidates without a common prompt.
    """
    found: list[Interaction] = []
    for arm, (first, second) in family.combined.items():
        four = _aligned(tables[first], tables[second], tables[arm])
        if four is None:
            continue
        for cohort in (None, *four.both.cohorts):
            make = functools.partial(
                Interaction,
                arm=arm,
                parts=(first, second),
                cohort=cohort,
                confidence=1 - policy.alpha_pass,
            )
            found += _measured(four, four.both.scope(cohort), policy, make)
    return tuple(found)


_Make = Callable[..., Interaction]
"""Makes an interaction from what depends on the metric."""


def _aligned(*tables: Table) -> _Four | None:
    keys = [list(zip(table["prompt_id"], table["repeat"], strict=True)) for table in tables]
    common = set(keys[0]).intersection(*keys)
    if not common:
        return None
    kept = [
        ordered(table.take(np.flatnonzero([key in common for key in of_table])))
        for table, of_table in zip(tables, keys, strict=True)
    ]
    first, second, both = map(from_table, kept)
    return _Four(first, second, both, kept[0]["prompt_id"].to_list())


def _measured(four: _Four, rows: BoolColumn, policy: Policy, make: _Make) -> Iterator[Interaction]:
    """Yield the metrics that some prompts of a scope have in all four answers."""
    measured = [_of_time(four, metric, rows, policy, make) for metric in TIMES]
    scores = {name: _scores(four, name) for name in four.both.metrics if name in METRICS}
    for metric, values in (scores | {"failures": _answered(four)}).items():
        measured.append(_of_score(four, metric, values, rows, policy, make))
    measured += _of_divergence(four, rows, make)
    yield from (one for one in measured if one.n)


def _of_time(
    four: _Four, metric: str, rows: BoolColumn, policy: Policy, make: _Make
) -> Interaction:
    """Return the interaction of a time: log(both · baseline / (first · second))."""
    baseline = four.both.baseline.latency_s(metric)
    candidates = [one.candidate.latency_s(metric) for one in (four.both, *four.singles)]
    known = rows & np.isfinite([baseline, *candidates]).all(axis=0)
    both, first, second = (np.log(times[known]) for times in candidates)
    logs = both + np.log(baseline[known]) - first - second
    if len(logs) < MIN_LOG_RATIO_N:
        return make(metric=metric, unit="ratio", n=len(logs))
    cell = Cell(_rule(metric), None, MIN_LOG_RATIO_N)
    limits = geomean_limits(logs, of_pairs(four.both, known, policy, timed=True), cell, policy)
    return make(metric=metric, unit="ratio", n=len(logs), **_numbers(limits))


def _rule(metric: str) -> Rule:
    return Rule(
        role=Role.REPORT,
        metric=metric,
        stat="geomean_ratio",
        bound="max",
        margin=1.0,
        scope="pooled",
        cohorts=None,
        pass_at=1.0,
    )


def _scores(four: _Four, metric: str) -> tuple[FloatColumn, ...]:
    """Return the scores of baseline, first, second and combined candidate."""
    sides = [one.scores(metric) for one in (*four.singles, four.both)]
    return (sides[2].baseline, *(one.candidate for one in sides))


def _answered(four: _Four) -> tuple[FloatColumn, ...]:
    """Return 1 for each answer that arrived and did not fail, like scores."""
    sides = (four.both.baseline, *(one.candidate for one in (*four.singles, four.both)))
    return tuple(side.answered.astype(np.float64) for side in sides)


def _of_score(
    four: _Four,
    metric: str,
    scores: Sequence[FloatColumn],
    rows: BoolColumn,
    policy: Policy,
    make: _Make,
) -> Interaction:
    """Return the interaction of a score: (both − baseline) − (first − baseline) − (second − …)."""
    known = rows & ~np.isnan(scores).any(axis=0)
    baseline, first, second, both = (values[known] for values in scores)
    halves = (both - first - second + baseline) / 2  # in [−1, 1], as the method needs
    bad = [values < METRICS[metric].pass_at for values in scores]
    made = make(metric=metric, unit="difference", n=len(halves), **_alone(four, bad, known))
    if len(halves) < MIN_MEAN_SCORE_N:
        return made
    limits = mean_difference(
        halves,
        effect=of_pairs(four.both, known, policy).effect(halves),
        margin=0.0,
        bound="min",
        confidence=1 - policy.alpha_pass,
    )
    return replace(made, **_numbers(limits, scale=2.0))


def _of_divergence(four: _Four, rows: BoolColumn, make: _Make) -> Iterator[Interaction]:
    """Yield the prompts whose greedy answer diverges from the baseline's, and is no tie."""
    compared, bad = rows.copy(), [np.zeros(len(rows), dtype=np.bool_)]
    for one in (*four.singles, four.both):
        found = one.divergences
        if found is None:
            return
        compared &= found.compared >= 0
        bad.append((found.position >= 0) & ~(found.gap <= found.allowed))
    alone = _alone(four, bad, compared)
    yield make(metric=DIVERGED, unit="difference", n=int(compared.sum()), **alone)


class _Alone(TypedDict):
    only_together: int
    only_one: tuple[int, int]
    examples: tuple[str, ...]


def _alone(four: _Four, bad: Sequence[BoolColumn], known: BoolColumn) -> _Alone:
    """Return where exactly one candidate is bad; `bad` has the baseline first, `both` last."""
    first, second, together = (
        known & bad[place] & (np.sum(bad, axis=0) == 1) for place in (1, 2, 3)
    )
    prompts = dict.fromkeys(four.prompts[int(row)] for row in np.flatnonzero(together))
    return {
        "only_together": int(together.sum()),
        "only_one": (int(first.sum()), int(second.sum())),
        "examples": tuple(prompts)[:_EXAMPLES],
    }


class _Numbers(TypedDict, total=False):
    estimate: float | None
    lower: float | None
    upper: float | None


def _numbers(found: Interval | Insufficient, scale: float = 1.0) -> _Numbers:
    if isinstance(found, Insufficient):
        return {}
    values = (found.estimate, found.lower, found.upper)
    estimate, lower, upper = (None if x is None else significant(scale * x) for x in values)
    return {"estimate": estimate, "lower": lower, "upper": upper}
