"""Latency percentiles of both arms: a line from p50 to the highest known, p95 or p99."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import altair as alt

from collector.contract import Arm, ArmLatency, Percentiles
from dashboard import words
from dashboard.charts import look


class _Shape(NamedTuple):
    """The shape of a percentile, and its sign in the legend's sentence."""

    name: str
    sign: str


SHAPES = {
    "p50": _Shape("circle", "●"),
    "p95": _Shape("diamond", "◆"),
    "p99": _Shape("triangle-right", "▶"),
}


def latency_range(latency: Sequence[ArmLatency], field: str) -> look.Spec:
    """Draw `ttft_s`, `tpot_s` or `e2e_s`, in milliseconds, one row per scope and arm."""
    spans, points = [], []
    for item in latency:
        percentiles: Percentiles = getattr(item, field)
        row = {"scope": words.scope(item.cohort), "arm": item.arm.value}
        found = [row | point for point in _points(percentiles)]
        if found:
            spans.append(row | {"from": found[0]["at"], "to": found[-1]["at"]})
        points += found
    scopes = list(dict.fromkeys(words.scope(item.cohort) for item in latency))
    return look.layered(*_layers(spans, points, scopes), rows=2 * len(scopes))


def _points(percentiles: Percentiles) -> Iterator[dict[str, Any]]:  # Any: a JSON value
    for name in SHAPES:
        seconds = getattr(percentiles, name)
        if seconds is not None:
            yield {
                "percentile": name,
                "at": seconds * 1e3,
                "text": words.milliseconds(seconds),
                "n": words.count(percentiles.n),
            }


def _layers(
    spans: list[dict[str, Any]], points: list[dict[str, Any]], scopes: list[str]
) -> Iterator[alt.Chart]:
    x = look.log_ms([point["at"] for point in points])
    y = alt.Y("scope:N", sort=scopes, title=None)
    arms = [arm.value for arm in Arm]
    offset = alt.YOffset("arm:N", sort=arms, scale=alt.Scale(paddingOuter=0.35))
    colour = look.arm_colour()
    yield (
        alt.Chart(look.data(spans))
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("from:Q", **x), x2=alt.X2("to:Q"), y=y, yOffset=offset, color=colour)
    )
    yield (
        alt.Chart(look.data(points))
        .mark_point(filled=True, size=65, opacity=1)
        .encode(
            x=alt.X("at:Q", **x),
            y=y,
            yOffset=offset,
            color=colour,
            shape=alt.Shape(
                "percentile:N",
                scale=alt.Scale(domain=list(SHAPES), range=[s.name for s in SHAPES.values()]),
                legend=None,
            ),
            tooltip=look.tooltips(
                scope="Cohort", arm="Arm", percentile="Percentile (exact, R-7)", text="Time", n="n"
            ),
        )
    )
