"""Acceptance by request size or load, by tokens accepted per step, and over time."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import altair as alt

from dashboard import words
from dashboard.charts import look
from evals.profiles.acceptance import AcceptanceBucket, AcceptanceInterval, Deployment, StepCount

_COLOUR = look.SERIES_COLOURS[0]


def by_bucket(buckets: Sequence[AcceptanceBucket], title: str) -> look.Spec:
    """Draw the acceptance rate of each bucket, as a point above a bar of its draft tokens."""
    rows: list[dict[str, Any]] = [  # Any: a JSON value
        {
            "bucket": words.span_of(bucket.low, bucket.high),
            "rate": bucket.rate,
            "text": words.acceptance_rate(bucket.rate),
            "length": words.acceptance_length(bucket.length),
            "counts": words.draft_counts(bucket.accepted_tokens, bucket.draft_tokens, bucket.steps),
            "n": words.counted(bucket.generations, "generation"),
        }
        for bucket in buckets
        if bucket.rate is not None
    ]
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X(
            "bucket:N",
            sort=[row["bucket"] for row in rows],
            axis=alt.Axis(title=title, labelAngle=0, labelOverlap=True),
        ),
        y=look.rate_axis("accepted ÷ drafted"),
        tooltip=look.tooltips(
            bucket=title, text="Acceptance rate", length="Acceptance length", counts="Counts", n="n"
        ),
    )
    bars = base.mark_bar(color=_COLOUR, opacity=0.75, width={"band": 0.6})
    texts = base.mark_text(dy=-8, fontSize=11, color=look.NEUTRAL).encode(text=alt.Text("text:N"))
    return look.layered(bars, texts)


def per_step(steps: Sequence[StepCount]) -> look.Spec:
    """Draw how many verify steps accepted 0, 1, 2 … draft tokens."""
    rows = [{"accepted": s.accepted, "steps": s.steps, "text": words.count(s.steps)} for s in steps]
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X(
            "accepted:O", axis=alt.Axis(title="draft tokens accepted per verify step", labelAngle=0)
        ),
        y=alt.Y("steps:Q", axis=alt.Axis(title="verify steps", tickCount=5, format="~s")),
        tooltip=[
            alt.Tooltip("accepted:O", title="Accepted"),
            *look.tooltips(text="Verify steps"),
        ],
    )
    bars = base.mark_bar(color=_COLOUR, opacity=0.75)
    texts = base.mark_text(dy=-8, fontSize=11, color=look.NEUTRAL).encode(text=alt.Text("text:N"))
    return look.layered(bars, texts)


def over_time(
    moments: Sequence[AcceptanceInterval],
    deployments: Sequence[Deployment],
    zone: ZoneInfo | None,
) -> look.Spec:
    """Draw the acceptance rate over time, with a line at each change of the fingerprint."""
    rows = [
        {
            "at": moment.start_unix_s * 1_000,
            "rate": moment.rate,
            "text": words.acceptance_rate(moment.rate),
            "length": words.acceptance_length(moment.length),
            "n": words.counted(moment.draft_tokens, "draft token"),
        }
        for moment in moments
        if moment.rate is not None
    ]
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X("at:T", axis=look.time_axis(zone)),
        y=look.rate_axis("accepted ÷ drafted"),
        tooltip=[
            alt.Tooltip("at:T", title="From", format="%d %b %H:%M"),
            *look.tooltips(text="Acceptance rate", length="Acceptance length", n="n"),
        ],
    )
    line = base.mark_line(color=_COLOUR, strokeWidth=2)
    points = base.mark_point(color=_COLOUR, filled=True, size=45, opacity=1)
    return look.layered(line, points, *_changes(deployments))


def _changes(deployments: Sequence[Deployment]) -> list[alt.Chart]:
    """Return a dashed line and a label for each fingerprint after the first."""
    rows: list[dict[str, Any]] = [  # Any: a JSON value
        {
            "at": deployment.first_start_unix_ns // 1_000_000,
            "label": f"⚑ {deployment.fingerprint[:10]}",
            "n": words.counted(deployment.generations, "generation"),
        }
        for deployment in deployments[1:]
    ]
    if not rows:
        return []
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X("at:T"),
        tooltip=look.tooltips(label="Fingerprint changed to", n="n"),
    )
    rule = base.mark_rule(color=look.SERIES_COLOURS[1], strokeDash=[5, 3], strokeWidth=2)
    label = base.mark_text(align="left", dx=5, fontSize=11, color=look.SERIES_COLOURS[1]).encode(
        y=alt.value(10), text=alt.Text("label:N")
    )
    return [rule, label]
