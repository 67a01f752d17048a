"""Distributions: cumulative shares, quantile–quantile plots, score changes."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from collector.contract import Arm, Outcome
from dashboard import words
from dashboard.charts import look
from evals.profiles.distributions import Curve, DifferenceBin

_DASHES = {Arm.BASELINE: [5, 3], Arm.CANDIDATE: [1, 0]}


def cumulative(curves: Sequence[Curve]) -> look.Spec:
    """Draw the cumulative distribution of a duration, one line per arm."""
    rows: list[dict[str, Any]] = [  # Any: a JSON value
        {
            "arm": curve.arm.value,
            "at": value * 1e3,
            "share": level,
            "text": words.milliseconds(value),
            "level": words.level(level),
            "n": words.count(curve.n),
        }
        for curve in curves
        for level, value in zip(curve.levels, curve.values, strict=True)
    ]
    arms = [arm.value for arm in Arm]
    line = (
        alt.Chart(look.data(rows))
        .mark_line(strokeWidth=2.2, interpolate="monotone")
        .encode(
            x=alt.X("at:Q", **look.log_ms([row["at"] for row in rows])),
            y=alt.Y(
                "share:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(title="share of generations", format="%", tickCount=5),
            ),
            color=look.arm_colour(),
            strokeDash=alt.StrokeDash(
                "arm:N",
                scale=alt.Scale(domain=arms, range=[_DASHES[arm] for arm in Arm]),
                legend=None,
            ),
            order=alt.Order("share:Q"),
            tooltip=look.tooltips(arm="Arm", level="Percentile", text="Time", n="n"),
        )
    )
    return look.layered(line)


def quantiles(curves: Sequence[Curve]) -> look.Spec:
    """Draw the candidate's quantiles against the baseline's, and the line of equality."""
    by_arm = {curve.arm: curve for curve in curves}
    baseline, candidate = (by_arm[arm] for arm in Arm)
    theirs = dict(zip(candidate.levels, candidate.values, strict=True))
    rows: list[dict[str, Any]] = [  # Any: a JSON value
        {
            "baseline": value * 1e3,
            "candidate": theirs[level] * 1e3,
            "baseline_text": words.milliseconds(value),
            "candidate_text": words.milliseconds(theirs[level]),
            "level": words.level(level),
        }
        for level, value in zip(baseline.levels, baseline.values, strict=True)
        if level in theirs
    ]
    drawn = [row[arm.value] for row in rows for arm in Arm]
    ends = [min(drawn), max(drawn)]
    # Both layers have the same title: different ones would be drawn side by side.
    x, y = (look.log_ms(ends, f"{arm.value}, ms, log scale") for arm in Arm)
    equal = (
        alt.Chart(look.data([{"at": end} for end in ends]))
        .mark_line(strokeDash=[4, 3], color=look.NEUTRAL)
        .encode(x=alt.X("at:Q", **x), y=alt.Y("at:Q", **y))
    )
    points = (
        alt.Chart(look.data(rows))
        .mark_point(filled=True, size=30, opacity=0.85, color=look.ARM_COLOURS[Arm.CANDIDATE])
        .encode(
            x=alt.X("baseline:Q", **x),
            y=alt.Y("candidate:Q", **y),
            tooltip=look.tooltips(
                level="Percentile", baseline_text="Baseline", candidate_text="Candidate"
            ),
        )
    )
    return look.layered(equal, points)


def score_changes(changes: Sequence[DifferenceBin]) -> look.Spec:
    """Draw a histogram of score changes; pairs without a change are a separate bar at 0."""
    rows = [
        {
            "low": change.low if change.low != change.high else -0.012,
            "high": change.high if change.low != change.high else 0.012,
            "pairs": change.pairs,
            "side": _side(change),
            "text": words.counted(change.pairs, "pair"),
            "range": _range(change),
        }
        for change in changes
        if change.pairs
    ]
    sides = ["candidate lower", "equal", "candidate higher"]
    colours = [
        look.OUTCOME_COLOURS[Outcome.FAIL],
        look.NEUTRAL,
        look.OUTCOME_COLOURS[Outcome.PASS],
    ]
    bars = (
        alt.Chart(look.data(rows))
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "low:Q",
                scale=alt.Scale(domain=[-1, 1]),
                axis=alt.Axis(title="◀ candidate scored lower · higher ▶", tickCount=8),
            ),
            x2=alt.X2("high:Q"),
            y=alt.Y(
                "pairs:Q",
                scale=alt.Scale(type="symlog"),
                axis=alt.Axis(title="pairs, log scale", tickCount=5, format="~s"),
            ),
            color=look.colour("side", sides, colours),
            tooltip=look.tooltips(range="Score difference", text="Pairs"),
        )
    )
    return look.layered(bars)


def _side(change: DifferenceBin) -> str:
    if change.low == change.high:
        return "equal"
    return "candidate lower" if change.high <= 0 else "candidate higher"


def _range(change: DifferenceBin) -> str:
    if change.low == change.high:
        return "none"
    return f"{words.difference(change.low)} to {words.difference(change.high)}"
