"""Limits that hold over launches of the servers as well as over requests."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from collector.nouns import counted
from evals.evidence.columns import BoolColumn, Counts, FloatColumn
from evals.evidence.launches import ENOUGH
from evals.gate.cells import Cell
from evals.policy import Policy
from evals.stats import Bound, Insufficient, Interval
from evals.stats.interval import LaunchSpread, outer_limit
from evals.stats.launch_ratio import (
    between_arms,
    difference_between_arms,
    differences_over_launches,
    over_launches,
)

StatOf = Callable[[BoolColumn], float]
"""Returns a statistic over the cell's values in a mask; of a ratio its logarithm."""


def widened_by_launches(
    found: Interval | Insufficient,
    stat_of: StatOf,
    launches: Counts | None,
    cell: Cell,
    policy: Policy,
) -> Interval | Insufficient:
    """Return limits that hold for these launches' requests and for other launches.

    `launches` is each value's group of launches, `None` if limits need not hold over launches.
    """
    if launches is None or isinstance(found, Insufficient):
        return found
    values = _by_launch(stat_of, launches)
    if len(values) < ENOUGH:
        return _too_few(len(values))
    compare = over_launches if cell.is_ratio else differences_over_launches
    between = compare(values, **cell.margin_at(1 - policy.alpha_pass))
    if isinstance(between, Insufficient):
        return between
    return _wider(found, between, np.exp(values) if cell.is_ratio else values, cell.rule.bound)


def widened_by_arms_launches(
    found: Interval | Insufficient,
    stat_of: tuple[StatOf, StatOf],
    launches: tuple[Counts, Counts] | None,
    cell: Cell,
    policy: Policy,
) -> Interval | Insufficient:
    """Like `widened_by_launches`, for unpaired arms: candidate and baseline, each by launch."""
    if launches is None or isinstance(found, Insufficient):
        return found
    candidate, baseline = map(_by_launch, stat_of, launches)
    if min(len(candidate), len(baseline)) < ENOUGH:
        return _too_few(min(len(candidate), len(baseline)))
    compare = between_arms if cell.is_ratio else difference_between_arms
    between = compare(candidate, baseline, **cell.margin_at(1 - policy.alpha_pass))
    if isinstance(between, Insufficient):
        return between
    apart = candidate - baseline.mean()
    return _wider(found, between, np.exp(apart) if cell.is_ratio else apart, cell.rule.bound)


def _by_launch(stat_of: StatOf, launches: Counts) -> FloatColumn:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.array([stat_of(launches == number) for number in np.unique(launches)])


def _too_few(seen: int) -> Insufficient:
    words = f"it was seen in {counted(seen, 'launch', 'launches')} of the servers; wanted {ENOUGH}"
    return Insufficient(reason=words, n=seen, n_needed=None)


def _wider(found: Interval, between: Interval, values: FloatColumn, bound: Bound) -> Interval:
    """Return the wider limits: a decision needs those over requests and those over launches."""
    spread = LaunchSpread(
        values=tuple(map(float, values)),
        limits=between,
        binds=_beyond(found, between, bound),
    )
    return replace(
        found,
        lower=outer_limit(min, found.lower, between.lower),
        upper=outer_limit(max, found.upper, between.upper),
        p_fail=max(found.p_fail, between.p_fail),
        p_worse=max(found.against_worse, between.against_worse),
        method=f"{found.method} and {between.method}",
        launches=spread,
    )


def _beyond(found: Interval, between: Interval, bound: Bound) -> bool:
    """Return whether, on the margin's side, the limit over launches is the wider one."""
    mine, theirs = (found.upper, between.upper) if bound == "max" else (found.lower, between.lower)
    if mine is None or theirs is None:
        return mine is not None
    return theirs > mine if bound == "max" else theirs < mine
