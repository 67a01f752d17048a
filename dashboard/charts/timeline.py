"""Phases of a request, and steps of a trace, as bars along a time axis."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from collector.contract import Arm, Generation
from dashboard import words
from dashboard.charts import look
from dashboard.trace_steps import TraceStep

_ROOM = 1.3
"""Width of the waterfall in lengths of the trace: the last bar's label stands beside it."""
PHASES = ("queue", "prefill", "to first token", "decode", "whole answer")
_PHASE_COLOURS = ("#C98A00", "#CC79A7", "#56B4E9", "#009E73", "#8A8A8A")
_KINDS = (*(arm.value for arm in Arm), "other step")
_KIND_COLOURS = (*(look.ARM_COLOURS[arm] for arm in Arm), "#C98A00")
MS = 1e3
_INDENT = "\u2003"


def timelines(sides: Sequence[Generation]) -> look.Spec:
    """Draw one row per arm: queue, prefill, first token and decode times that were reported."""
    rows = [row for side in sides for row in _phases(side)]
    names = [_arm(side) for side in sides]
    bars = (
        alt.Chart(look.data(rows))
        .mark_bar(height=16)
        .encode(
            x=alt.X("from:Q", axis=alt.Axis(title="ms since the request began", format=",~r")),
            x2=alt.X2("to:Q"),
            y=alt.Y("arm:N", sort=names, title=None),
            color=look.colour("phase", PHASES, list(_PHASE_COLOURS)),
            tooltip=look.tooltips(arm="Arm", phase="Phase", text="Time"),
        )
    )
    firsts = [
        {"arm": _arm(side), "at": side.ttft_s * MS, "text": words.milliseconds(side.ttft_s)}
        for side in sides
        if side.ttft_s is not None
    ]
    ticks = (
        alt.Chart(look.data(firsts))
        .mark_tick(thickness=3, size=26, color=look.SERIES_COLOURS[1])
        .encode(
            x=alt.X("at:Q"),
            y=alt.Y("arm:N", sort=names),
            tooltip=[alt.Tooltip("text:N", title="First token")],
        )
    )
    # The phases' legend needs a second line, as high as a row.
    return look.layered(bars, ticks, rows=len(names) + 1)


def waterfall(steps: Sequence[TraceStep]) -> look.Spec:
    """Draw a trace's steps in tree order, each at its time."""
    names = [_numbered(place, step) for place, step in enumerate(steps, start=1)]
    rows = [
        {
            "step": name,
            "from": step.start_s * MS,
            "to": step.end_s * MS,
            "kind": _kind(step),
            "text": words.milliseconds(step.end_s - step.start_s),
            "failed": "✕ failed" if step.failed else "",
            "about": f"{words.milliseconds(step.end_s - step.start_s)}{_failed(step)}",
        }
        for name, step in zip(names, steps, strict=True)
    ]
    limit = alt.ExprRef(f"{look.NARROW} ? 120 : 320")  # the table below has the whole names
    last = max((step.end_s for step in steps), default=0.0) * MS or 1.0
    base = alt.Chart(look.data(rows)).encode(
        x=alt.X(
            "from:Q",
            axis=alt.Axis(title="ms since the trace began", format=",~r", labelOverlap=True),
            scale=alt.Scale(domain=[0, last * _ROOM], nice=False),
        ),
        y=alt.Y("step:N", sort=names, title=None, axis=alt.Axis(labelLimit=limit)),
        tooltip=look.tooltips(step="Step", kind="Arm", text="Time", failed="Error"),
    )
    bars = base.mark_bar(height=15).encode(
        x2=alt.X2("to:Q"),
        color=look.colour("kind", _KINDS, list(_KIND_COLOURS)),
    )
    texts = base.mark_text(align="left", dx=4, fontSize=11, color=look.NEUTRAL).encode(
        x=alt.X("to:Q"), text=alt.Text("about:N")
    )
    return look.layered(bars, texts, rows=len(rows))


def _numbered(place: int, step: TraceStep) -> str:
    # Rows are identified by their names, and names may repeat.
    name = step.name if len(step.name) <= 40 else f"{step.name[:39]}…"
    return _INDENT * step.depth + f"{place}. {name}"


def _kind(step: TraceStep) -> str:
    return _KINDS[-1] if step.arm is None else step.arm.value


def _failed(step: TraceStep) -> str:
    return " ✕ failed" if step.failed else ""


def _arm(side: Generation) -> str:
    return "no arm" if side.arm is None else side.arm.value


def _phases(side: Generation) -> Iterator[dict[str, Any]]:  # Any: a JSON value
    at = 0.0
    for name, seconds in (("queue", side.queue_s), ("prefill", side.prefill_s)):
        if seconds is not None:
            yield _bar(side, name, at, at + seconds)
            at += seconds
    if side.ttft_s is not None and side.ttft_s > at:
        yield _bar(side, "to first token", at, side.ttft_s)
        at = side.ttft_s
    yield _bar(side, "decode" if side.ttft_s is not None else "whole answer", at, side.e2e_s)


def _bar(side: Generation, phase: str, start_s: float, end_s: float) -> dict[str, Any]:
    return {
        "arm": _arm(side),
        "phase": phase,
        "from": start_s * MS,
        "to": max(end_s, start_s) * MS,
        "text": words.milliseconds(max(end_s - start_s, 0.0)),
    }
