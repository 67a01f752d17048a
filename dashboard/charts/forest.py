"""The forest plot: each finding's estimate and limits against its margin."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from collector.contract import Finding, Outcome
from dashboard import words
from dashboard.charts import look

_REFERENCE = {"ratio": 1.0, "difference": 0.0}

# A log axis' default ticks leave out values between 1 and 2, where most margins are.
_LOG_TICKS = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    1,
    1.1,
    1.25,
    1.5,
    2,
    3,
    5,
    10,
    20,
    50,
    100,
)

_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+~g')"
_POINTS = f"datum.value == 0 ? '0' : format(datum.value * 100, '+~g') + '{words.THIN_SPACE}pp'"


_ROW_HEIGHT = 34
"""Pixels of a row, enough for two lines of a label."""
# Any: Altair's own
_FITTING: dict[str, Any] = {"grid": False, "labelOverlap": True, "titleAnchor": "end"}
_PARTS = "split(datum.label, ' · ')"
_LABEL = (
    f"{look.NARROW} ? [{_PARTS}[1], {_PARTS}[0] + ' · ' + slice({_PARTS}, -1)[0]] : datum.label"
)
"""A row's label: on a phone in two lines, the measure and then the scope and the role."""


class _OpenEnd(NamedTuple):
    """How a missing limit is drawn."""

    limit: str
    end: str
    arrow: str
    align: Literal["left", "right"]
    dx: int


_OPEN_ENDS = (
    _OpenEnd("lower", "from", "triangle-left", "left", 10),
    _OpenEnd("upper", "to", "triangle-right", "right", -10),
)


def forest(findings: Sequence[Finding], unit: str) -> look.Spec:
    """Draw the findings of one unit, one per row, in the given order.

    A missing limit extends to the edge, ends in an arrow, and is labelled. A finding without an
    estimate shows only its margin; a ring is the estimate of one launch. Differences have an axis
    in percentage points if all of them are differences of shares.
    """
    shown = [finding for finding in findings if finding.unit == unit]
    rows = [_row(finding) for finding in shown]
    edges = _edges(shown, _REFERENCE[unit])
    for row in rows:
        row["reference"] = _REFERENCE[unit]
        row["from"] = edges[0] if row["lower"] is None else row["lower"]
        row["to"] = edges[1] if row["upper"] is None else row["upper"]
        row["beyond"] = edges[1] if row["bound"] == "max" else edges[0]
    shares = all(words.unit_of(f.unit, f.stat) == "share" for f in shown)
    axis = _axis(edges, unit, _POINTS if shares else _SIGNED)
    layers = [*_layers(rows, axis, unit), *_launches(shown, axis)]
    return look.layered(*layers, rows=len(rows), step=_ROW_HEIGHT)


def row_label(finding: Finding) -> str:
    """Return a finding's label in one line."""
    what = words.measure(finding.metric, finding.stat)
    return f"{words.scope(finding.cohort)} · {what} · {words.ROLE_WORDS[finding.role]}"


def _row(finding: Finding) -> dict[str, Any]:  # Any: a JSON value
    unit = words.unit_of(finding.unit, finding.stat)
    return {
        "label": row_label(finding),
        "outcome": words.OUTCOME_WORDS[finding.outcome],
        "bound": finding.bound,
        "margin": finding.margin,
        "estimate": finding.estimate,
        "lower": finding.lower,
        "upper": finding.upper,
        "estimate_text": words.in_unit(finding.estimate, unit),
        "lower_text": words.limit(finding.lower, unit),
        "upper_text": words.limit(finding.upper, unit),
        "margin_text": words.margin(finding),
        "n_text": words.counted(finding.n, "pair"),
        "message": finding.message,
        "no_limit": words.NO_LIMIT,
        "no_estimate": "no estimate",
    }


def _edges(findings: Sequence[Finding], reference: float) -> tuple[float, float]:
    """Return the ends of the axis: the range drawn, with some room."""
    drawn = [reference]
    for finding in findings:
        numbers = (
            finding.estimate, finding.lower, finding.upper, finding.margin, *finding.launches
        )  # fmt: skip
        drawn += [number for number in numbers if number is not None]
    low, high = min(drawn), max(drawn)
    if reference == 1.0 and low > 0:
        room = max((high / low) ** 0.08, 1.02)
        return low / room, high * room
    room = max((high - low) * 0.08, 0.005)
    return low - room, high + room


def _layers(
    rows: list[dict[str, Any]],  # Any: a JSON value
    x: dict[str, Any],  # Any: Altair's own
    unit: str,
) -> Iterator[alt.Chart]:
    # A layer that a filter leaves empty has no description for screen readers.
    base = alt.Chart(look.data(rows))
    in_order = [row["label"] for row in rows]
    y = alt.Y(
        "label:N", sort=in_order, title=None, axis=alt.Axis(labelExpr=_LABEL, labelOverlap=False)
    )
    tooltip = look.tooltips(
        label="Finding",
        message="In words",
        estimate_text="Estimate",
        lower_text="Lower limit",
        upper_text="Upper limit",
        margin_text="Margin",
        n_text="n",
    )
    names, colours, shapes = look.outcome_scale()
    colour = look.colour("outcome", names, colours)
    shape = alt.Shape("outcome:N", scale=alt.Scale(domain=names, range=shapes))
    with_estimate = base.transform_filter("datum.estimate !== null").encode(y=y, tooltip=tooltip)
    yield base.mark_bar(opacity=0.13, color=look.OUTCOME_COLOURS[Outcome.FAIL]).encode(
        x=alt.X("margin:Q", **x), x2=alt.X2("beyond:Q"), y=y
    )
    yield (
        alt.Chart(look.data([{"at": _REFERENCE[unit]}]))
        .mark_rule(strokeDash=[4, 3], color=look.NEUTRAL)
        .encode(x=alt.X("at:Q", **x))
    )
    yield with_estimate.mark_rule(strokeWidth=2.5).encode(
        x=alt.X("from:Q", **x), x2=alt.X2("to:Q"), color=colour
    )
    for limit, end, arrow, align, dx in _OPEN_ENDS:
        open_end = with_estimate.transform_filter(f"datum.{limit} === null")
        at = alt.X(f"{end}:Q", **x)
        yield open_end.mark_point(shape=arrow, filled=True, size=90, opacity=1, aria=False).encode(
            x=at, color=colour
        )
        yield open_end.mark_text(
            align=align, dx=dx, dy=-10, fontSize=10, color=look.NEUTRAL, aria=False
        ).encode(x=at, text=alt.Text("no_limit:N"))
    yield (
        base.transform_filter("datum.estimate === null")
        .mark_text(fontSize=11, color=look.NEUTRAL, aria=False)
        .encode(x=alt.X("reference:Q", **x), y=y, text=alt.Text("no_estimate:N"), tooltip=tooltip)
    )
    yield base.mark_tick(thickness=2.5, size=13, color=look.OUTCOME_COLOURS[Outcome.FAIL]).encode(
        x=alt.X("margin:Q", **x), y=y, tooltip=tooltip
    )
    yield with_estimate.mark_point(filled=True, size=110, opacity=1).encode(
        x=alt.X("estimate:Q", **x), color=colour, shape=shape
    )


def _launches(findings: Sequence[Finding], x: dict[str, Any]) -> Iterator[alt.Chart]:
    """Draw a ring for each launch of the servers, if the limits are over launches."""
    rings = [
        {
            "label": row_label(finding),
            "launch": f"Launch {number} of {len(finding.launches)}",
            "ratio": ratio,
            "ratio_text": words.in_unit(ratio, "ratio"),
        }
        for finding in findings
        for number, ratio in enumerate(finding.launches, start=1)
        if ratio is not None
    ]
    if rings:
        tooltip = look.tooltips(launch="Launch", ratio_text="Estimate")
        yield (
            alt.Chart(look.data(rings))
            .mark_point(filled=False, size=36, opacity=0.8, color=look.NEUTRAL)
            .encode(x=alt.X("ratio:Q", **x), y=alt.Y("label:N"), tooltip=tooltip)
        )


def _axis(
    edges: tuple[float, float], unit: str, labels: str
) -> dict[str, Any]:  # Any: Altair's own
    title = "◀ candidate lower · candidate higher ▶"
    if unit == "ratio" and edges[0] > 0:
        scale = alt.Scale(type="log", domain=list(edges), nice=False)
        values = [tick for tick in _LOG_TICKS if edges[0] <= tick <= edges[1]]
        axis = alt.Axis(title=title, values=values, format="~g", **_FITTING)
    else:
        scale = alt.Scale(domain=list(edges), nice=False, zero=False)
        axis = alt.Axis(title=title, tickCount=6, labelExpr=labels, **_FITTING)
    return {"scale": scale, "axis": axis}
