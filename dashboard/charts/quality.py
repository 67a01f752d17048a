"""Quality in pairs: how many have a lower and how many a higher candidate score."""

from collections.abc import Sequence

import altair as alt

from collector.contract import Outcome, QualityCounts
from dashboard import words
from dashboard.charts import look

_SIDES = ("candidate lower", "candidate higher")


def wins_and_losses(quality: Sequence[QualityCounts]) -> look.Spec:
    """Draw losses to the left and wins to the right, in pairs; ties are not drawn."""
    labels = [f"{words.metric(item.metric)} · {words.scope(item.cohort)}" for item in quality]
    rows = []
    for item, label in zip(quality, labels, strict=True):
        # The sign only determines the bar's side; the text shows the count.
        for side, n, at in (
            (_SIDES[0], item.losses, -item.losses),
            (_SIDES[1], item.wins, item.wins),
        ):
            rows.append(
                {
                    "label": label,
                    "side": side,
                    "at": at,
                    "text": words.count(n) if n else "",
                    "ties": words.count(item.ties),
                    "n": words.count(item.n),
                }
            )
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X(
            "at:Q",
            axis=alt.Axis(
                title="pairs: ◀ candidate scored lower | candidate scored higher ▶",
                labelExpr="format(abs(datum.value), 'd')",
                tickMinStep=1,
                tickCount=6,
            ),
            scale=alt.Scale(padding=28),
        ),
        y=alt.Y("label:N", sort=labels, title=None),
        tooltip=look.tooltips(
            label="Metric", side="Side", text="Pairs", ties="Ties", n="Scored pairs"
        ),
    )
    colours = [look.OUTCOME_COLOURS[Outcome.FAIL], look.OUTCOME_COLOURS[Outcome.PASS]]
    bars = base.mark_bar(height=14).encode(color=look.colour("side", _SIDES, colours))
    left = base.transform_filter("datum.at < 0").mark_text(
        align="right", dx=-5, color=look.NEUTRAL, aria=False
    )
    right = base.transform_filter("datum.at > 0").mark_text(
        align="left", dx=5, color=look.NEUTRAL, aria=False
    )
    texts = [mark.encode(text=alt.Text("text:N")) for mark in (left, right)]
    return look.layered(bars, *texts, rows=len(labels))
