"""Findings and hypotheses in words, with units."""

import math

from collector.contract import Finding, Outcome, Reason, is_share
from collector.nouns import counted
from evals.gate.cells import Cell
from evals.gate.measured import Measurement, Obstacle
from evals.report.number_words import difference_text, ratio_text
from evals.stats import Interval
from evals.stats.significant import significant

_NEAR = 0.3


def finding_message(
    cell: Cell, measured: Measurement, outcome: Outcome, because: str | None
) -> str:
    """Return a finding in one sentence; `because` says why it is inconclusive."""
    tail = outcome.value if because is None else f"{outcome.value}: {because}"
    return f"{subject(cell)}: {_numbers(cell, measured)}margin {margin(cell)}: {tail}"


def why(finding: Finding) -> str | None:
    """Return why a finding is inconclusive, without the pairs it needs (another line has them)."""
    if finding.reason is Reason.TOO_FEW and finding.n_needed is not None:
        return "too few pairs"
    return finding.because


def besides_numbers(finding: Finding) -> str:
    """Return what a finding's message adds to its numbers: its note, and why it is inconclusive."""
    return "; ".join(filter(None, (finding.note, why(finding))))


def hypothesis(cell: Cell) -> str:
    """Return the cell's hypothesis and its minimum number of pairs."""
    of = "the ratio candidate/baseline of" if cell.is_ratio else "candidate − baseline in the"
    return (
        f"{cell.rule.role.value}: {of} {subject(cell)}, is {margin(cell)} "
        f"({cell.method}, at least {cell.counted(cell.min_n)})"
    )


def subject(cell: Cell) -> str:
    """Name the metric, the stat and the scope."""
    scope = "pooled" if cell.cohort is None else f"in `{cell.cohort}`"
    return f"{cell.metric.stat_words(cell.rule.stat)}, {scope}"


def margin(cell: Cell) -> str:
    """Return the margin with its side, such as `≤ 1.25` or `≥ −10.0 pp` (percentage points)."""
    return f"{'≤' if cell.rule.bound == 'max' else '≥'} {_value(cell, cell.rule.margin)}"


def undecided(cell: Cell, measured: Measurement, n_needed: int | None) -> Obstacle:
    """Return the obstacle that the limits are on both sides of the margin, with the need."""
    if n_needed is not None:
        more = cell.counted(n_needed, "more ")
        words = f"the limits are too wide for the margin; needs about {more}"
        return Obstacle(Reason.TOO_FEW, words, n_needed)
    if _stands_on_margin(cell, measured):
        words = "too close: the estimate lies so near the margin that no number of pairs decides"
        return Obstacle(Reason.TOO_CLOSE, words)
    return Obstacle(Reason.TOO_FEW, "the limits are too wide for the margin")


def too_few_launches(seen: int, needed: int | None) -> Obstacle:
    """Return the obstacle that single launches differ too much to decide."""
    words = f"too few launches: the limits over {counted(seen, 'launch', 'launches')} are too wide"
    if needed is None:
        return Obstacle(Reason.LAUNCHES, f"{words} for the margin")
    words += f", needs about {counted(needed, 'more launch', 'more launches')} of each arm"
    return Obstacle(Reason.LAUNCHES, words, launches_needed=needed)


def _stands_on_margin(cell: Cell, measured: Measurement) -> bool:
    """Return whether the margin is in the first three tenths of the way from estimate to limit."""
    interval = measured.interval
    if interval is None or interval.estimate is None:
        return False
    limit = interval.upper if cell.rule.bound == "max" else interval.lower
    if limit is None:
        return False
    reach = abs(limit - interval.estimate)
    return abs(interval.estimate - cell.rule.margin) <= _NEAR * reach


def reason_words(reason: Reason, words: str) -> str:
    """Return an obstacle's words, with `contract broken` before them for that reason."""
    return f"contract broken, {words}" if reason is Reason.QUALITY else words


def _numbers(cell: Cell, measured: Measurement) -> str:
    interval = measured.interval
    if interval is None:
        return ""
    name = "candidate/baseline" if cell.is_ratio else "candidate − baseline"
    estimate = "unbounded" if interval.estimate is None else _value(cell, interval.estimate)
    if interval.lower is None and interval.upper is None:
        limits = "no limits"
    else:
        lower = "no lower limit" if interval.lower is None else _value(cell, interval.lower)
        upper = "no upper limit" if interval.upper is None else _value(cell, interval.upper)
        limits = f"{lower} to {upper}"
    note = "" if measured.note is None else f"; {measured.note}"
    n = f"{cell.counted(measured.n)}{_spread(cell, interval)}"
    return f"{name} {estimate} ({limits}, {n}){note}, "


def _spread(cell: Cell, interval: Interval) -> str:
    """Return the range of the launches' values."""
    if interval.launches is None:
        return ""
    values = interval.launches.values
    ends = (_value(cell, x) if math.isfinite(x) else "no end" for x in (min(values), max(values)))
    return f" in {len(values)} launches from {' to '.join(ends)}"


def _value(cell: Cell, value: float) -> str:
    value = significant(value) or 0.0  # the last digits differ between builds, and may round apart
    if cell.is_ratio:
        return ratio_text(value)
    return difference_text(value, share=is_share(cell.rule.stat))
