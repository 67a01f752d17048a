"""Acceptance of drafted tokens: by cohort, and by position in the draft."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from collector.contract import Acceptance
from dashboard import words
from dashboard.charts import look


def acceptance_by_cohort(acceptance: Sequence[Acceptance]) -> look.Spec:
    """Draw the acceptance rate, one bar per cohort, labelled with the rate."""
    rows: list[dict[str, Any]] = [  # Any: a JSON value
        {
            "series": series(item, acceptance),
            "rate": item.rate,
            "text": words.acceptance_rate(item.rate),
            "length": words.acceptance_length(item.length),
            "counts": words.draft_counts(item.accepted_tokens, item.draft_tokens, item.steps),
        }
        for item in acceptance
        if item.rate is not None
    ]
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X(
            "rate:Q",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(title="accepted ÷ drafted tokens", format="%", tickCount=5),
        ),
        y=alt.Y("series:N", sort=[row["series"] for row in rows], title=None),
        tooltip=look.tooltips(
            series="Cohort", text="Acceptance rate", length="Acceptance length", counts="Counts"
        ),
    )
    # The label of a long bar is drawn inside it: outside, it would leave the chart.
    outside = base.transform_filter("datum.rate <= 0.8").mark_text(
        align="left", dx=6, fontSize=12, color=look.NEUTRAL, aria=False
    )
    inside = base.transform_filter("datum.rate > 0.8").mark_text(
        align="right", dx=-6, fontSize=12, color="#FFFFFF", aria=False
    )
    bars = base.mark_bar(color="#1F77AD", height=18)
    texts = [side.encode(text=alt.Text("text:N")) for side in (outside, inside)]
    return look.layered(bars, *texts, rows=len(rows))


def acceptance_by_position(acceptance: Sequence[Acceptance]) -> look.Spec:
    """Draw the share of drafts accepted at each draft position (from 1), one line per cohort."""
    rows = [row for item in acceptance for row in _positions(item, series(item, acceptance))]
    names = list(dict.fromkeys(row["series"] for row in rows))
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X(
            "position:Q",
            axis=alt.Axis(
                title="draft position", values=sorted({r["position"] for r in rows}), format="d"
            ),
            scale=alt.Scale(nice=False, padding=14),
        ),
        y=look.rate_axis("accepted ÷ drafted at the position"),
        color=look.series_colour("series", names),
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        shape=look.series_shape("series", names),
        tooltip=[
            *look.tooltips(series="Cohort"),
            alt.Tooltip("position:Q", title="Draft position"),
            *look.tooltips(text="Accepted", drafts="Proposed there"),
        ],
    )
    return look.layered(base.mark_line(strokeWidth=2), points)


def series(item: Acceptance, among: Sequence[Acceptance]) -> str:
    """Return a scope's name, with the arm if both arms speculated."""
    name = words.scope(item.cohort)
    both = len({other.arm for other in among if other.rate is not None}) > 1
    return f"{name} ({item.arm.value})" if both else name


def _positions(item: Acceptance, name: str) -> list[dict[str, Any]]:  # Any: a JSON value
    return [
        {
            "series": name,
            "position": position,
            "rate": rate,
            "text": words.acceptance_rate(rate),
            "drafts": words.count(drafts),
        }
        for position, (rate, drafts) in enumerate(
            zip(item.rate_per_pos, item.drafts_per_pos, strict=False), start=1
        )
    ]
