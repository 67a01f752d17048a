"""The common style of all charts: colours, shapes, sizes, and inline data.

Colours are Okabe and Ito's palette for colour-blind readers, slightly darkened for contrast on
white; a shape always duplicates the information of a colour.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import altair as alt

from collector.contract import Arm, Outcome
from dashboard import words

Spec = dict[str, Any]
"""A Vega-Lite chart; Any: JSON, except its `datasets`, which are lists of rows by name."""
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
SERIES_COLOURS = (
    "#2F8DC9",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#C98A00",
    "#56B4E9",
    "#8C6BB1",
    "#8A8A8A",
)
SERIES_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)
NEUTRAL = "#8A8A8A"
NARROW = "containerSize()[0] < 520"
"""Vega expression that is true on a phone."""
STEP = 27
"""Height of a row, pixels."""
AROUND = 96
"""Height of legend, axis and axis title in pixels: the page's chart height includes them."""


_CONFIG = {
    "locale": {
        "number": {
            "decimal": ".",
            "thousands": words.THIN_SPACE,
            "grouping": [3],
            "currency": ["", ""],
        }
    },
    "view": {"strokeWidth": 0},
    "axis": {
        "labelLimit": 320,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
}


def data(rows: Iterable[Row]) -> dict[str, Any]:  # Any: JSON
    """Return rows as inline data, without a data frame and without Altair's checks of each row."""
    return {"values": [dict(row) for row in rows]}


def outcome_scale() -> tuple[list[str], list[str], list[str]]:
    """Return the outcomes' words, colours and shapes, in the same order."""
    return (
        [words.OUTCOME_WORDS[o] for o in Outcome],
        [OUTCOME_COLOURS[o] for o in Outcome],
        [OUTCOME_SHAPES[o] for o in Outcome],
    )


def legend() -> alt.Legend:
    """Return a legend above the chart, in several rows if there are many series."""
    columns = alt.ExprRef(f"{NARROW} ? 2 : 4")
    return alt.Legend(
        orient="top", title=None, offset=4, symbolSize=90, labelLimit=300, columns=columns
    )


_TICKS_MS = [digit * 10**power for power in range(-2, 7) for digit in (1, 1.5, 2, 3, 5, 7)]


def log_ms(drawn: Iterable[float], title: str = "ms, log scale") -> dict[str, Any]:
    """Return a log scale and axis in milliseconds, slightly wider than the values drawn."""
    positive = [at for at in drawn if at > 0] or [1.0]
    low, high = min(positive) / 1.15, max(positive) * 1.15
    values = [tick for tick in _TICKS_MS if low <= tick <= high]
    axis = alt.Axis(title=title, values=values, format=",~r", labelOverlap=True)
    return {"scale": alt.Scale(type="log", domain=[low, high], nice=False), "axis": axis}


_TIME_LABEL = (
    "timeFormat(datum.value, seconds(datum.value) ? '%H:%M:%S'"
    " : hours(datum.value) || minutes(datum.value) ? '%H:%M' : '%d %b')"
)


def time_axis(zone: ZoneInfo | None) -> alt.Axis:
    """Return the axis of times: the browser draws them in its own time zone, and this names it."""
    title = "your local time" if zone is None else f"time in {zone.key.replace('_', ' ')}"
    return alt.Axis(title=title, labelOverlap=True, labelExpr=_TIME_LABEL)


def arm_colour() -> alt.Color:
    """Return the colour of an arm, with a legend."""
    return colour("arm", [arm.value for arm in Arm], [ARM_COLOURS[arm] for arm in Arm])


def around_one(drawn: Iterable[float | None]) -> dict[str, Any]:
    """Return the scale and axis of a ratio: the values drawn, including 1, with some room."""
    given = [1.0, *(value for value in drawn if value is not None)]
    room = max((max(given) - min(given)) * 0.12, 0.02)
    return {
        "scale": alt.Scale(domain=[min(given) - room, max(given) + room], nice=False, zero=False),
        "axis": alt.Axis(tickCount=6, labelExpr="format(datum.value, '~g') + '×'"),
    }


def tooltips(**titles: str) -> list[alt.Tooltip]:
    """Return a tooltip of texts: the title of each field."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def rate_axis(title: str) -> alt.Y:
    """Return the axis of a `rate` from 0 to 1."""
    axis = alt.Axis(title=title, format="%", tickCount=5)
    return alt.Y("rate:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)


def colour(field: str, names: Sequence[str], colours: Sequence[str]) -> alt.Color:
    """Return the colours of a field's values, with a legend."""
    scale = alt.Scale(domain=list(names), range=list(colours))
    return alt.Color(f"{field}:N", scale=scale, legend=legend())


def shape(field: str, names: Sequence[str], shapes: Sequence[str]) -> alt.Shape:
    """Return the shapes of a field's values, with a legend."""
    scale = alt.Scale(domain=list(names), range=list(shapes))
    return alt.Shape(f"{field}:N", scale=scale, legend=legend())


def series_colour(field: str, names: Sequence[str]) -> alt.Color:
    """Return the colours of series by name, with a legend."""
    return colour(field, names, cycled(SERIES_COLOURS, len(names)))


def series_shape(field: str, names: Sequence[str]) -> alt.Shape:
    """Return the shapes that duplicate the series' colours."""
    return shape(field, names, cycled(SERIES_SHAPES, len(names)))


def cycled(values: Sequence[str], n: int) -> list[str]:
    """Return n values, repeating the list if it is shorter."""
    return [values[i % len(values)] for i in range(n)]


def layered(*layers: alt.Chart, rows: int | None = None, step: int = STEP) -> Spec:
    """Return the specification of layered charts, with the height of its rows.

    Altair would copy every layer six times, and charts take most of a page's time. So each layer is
    converted once, and the surrounding specification is written here.
    """
    datasets: dict[str, list[Row]] = {}
    height = 300 if rows is None else max(rows, 1) * step + AROUND
    return {
        "$schema": alt.SCHEMA_URL,
        "layer": [_layer(layer, datasets) for layer in layers],
        "datasets": datasets,
        "height": height,
        "config": _CONFIG,
    }


def _layer(layer: alt.Chart, datasets: dict[str, list[Row]]) -> Spec:
    rows = layer.data["values"]
    # Named by its content's hash, so that a viewer's chart is redrawn when the data changes.
    name = hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()
    datasets[name] = rows
    bare = layer.copy(deep=False)
    bare.data = alt.Undefined
    # Not validated against the schema: the tests validate every chart.
    written: Spec = bare.to_dict(validate=False, context={"top_level": False})
    return written | {"data": {"name": name}}
