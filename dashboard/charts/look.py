"""What all charts share: colours, shapes, sizes, and how rows become data.

Colours are Okabe and Ito's palette for colour-blind readers, a little darker where it would fade on
white; shape always repeats what colour says.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt

from collector.contract import Arm, Outcome
from dashboard import words

Layers = alt.LayerChart | alt.FacetChart
"""What Altair says that layering charts may return."""
Row = Mapping[str, Any]  # Any: a JSON value

OUTCOME_COLOURS = {
    Outcome.PASS: "#009E73",
    Outcome.FAIL: "#D55E00",
    Outcome.INCONCLUSIVE: "#C98A00",
}
OUTCOME_SHAPES = {
    Outcome.PASS: "circle",
    Outcome.FAIL: "square",
    Outcome.INCONCLUSIVE: "triangle-up",
}
ARM_COLOURS = {Arm.BASELINE: "#8A8A8A", Arm.CANDIDATE: "#2F8DC9"}
SERIES_COLOURS = ("#2F8DC9", "#D55E00", "#009E73", "#CC79A7", "#C98A00", "#56B4E9")
SERIES_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
NEUTRAL = "#8A8A8A"
STEP = 27
"""Height of a row, pixels."""
AROUND = 96
"""Height of legend, axis and axis title, pixels: the page fits all of a chart into its height."""


def data(rows: Iterable[Row]) -> alt.InlineData:
    """Return rows as inline data, without a data frame."""
    return alt.InlineData(values=[dict(row) for row in rows])


def outcome_scale() -> tuple[list[str], list[str], list[str]]:
    """Return the outcomes as words, with their colours and shapes, in one order."""
    return (
        [words.OUTCOME_WORDS[o] for o in Outcome],
        [OUTCOME_COLOURS[o] for o in Outcome],
        [OUTCOME_SHAPES[o] for o in Outcome],
    )


def legend() -> alt.Legend:
    """Return a legend in a row above the chart."""
    return alt.Legend(orient="top", title=None, offset=4, symbolSize=90)


def finished(chart: Layers, *, rows: int | None = None) -> Layers:
    """Return the chart with the height of its rows and without a frame."""
    height = 300 if rows is None else max(rows, 1) * STEP + AROUND
    styled: Layers = chart.properties(height=height).configure_view(strokeWidth=0)
    framed: Layers = styled.configure_axis(
        labelLimit=320, labelFontSize=12, titleFontSize=12, titleFontWeight="normal"
    )
    return framed
