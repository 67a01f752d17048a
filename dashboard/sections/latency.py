"""Latency percentiles of both arms."""

from collections.abc import Mapping, Sequence

import streamlit as st

from collector.contract import LATENCIES, P99_FROM, Arm, ArmLatency, Finding, Percentiles
from dashboard import charts, markup, words
from dashboard.drawing import draw
from dashboard.markup import TableCell, TableColumn

_Key = tuple[str | None, str, str]


def show(latency: Sequence[ArmLatency], findings: Sequence[Finding]) -> None:
    """Draw TTFT, TTFO, TPOT and end-to-end percentiles, and the same numbers as a table.

    The candidate's values include the ratio to the baseline's, if a finding has one.
    """
    if not latency:
        st.html(markup.note("The verdict has no latency here."))
        return
    signs = ", ".join(f"{shape.sign} {name}" for name, shape in charts.SHAPES.items())
    st.html(
        markup.note(
            f"{signs} over the paired generations that succeeded: exact sample percentiles "
            f"(R-7), not estimates. Fewer than {P99_FROM} values have no p99."
        )
    )
    with st.container(key="charts-latency"):
        places = st.columns(len(LATENCIES))
    for column, metric in zip(places, LATENCIES, strict=True):
        title = words.latency(metric)
        with column:
            st.html(markup.heading(title))
            draw(charts.latency_range(latency, f"{metric}_s"), alt=f"{title}, by cohort and arm")
    ratios = {(f.cohort, f.metric, f.stat): f for f in findings}
    rows = [row(item, ratios) for item in latency]
    st.html(markup.table("Latency, exact percentiles (R-7)", columns(), rows))


def columns() -> list[TableColumn]:
    """Return the table's columns."""
    made = [
        TableColumn("Cohort"),
        TableColumn("Arm"),
        TableColumn("Generations", number=True),
        TableColumn("Errors", number=True),
    ]
    for metric in LATENCIES:
        short = words.capitalized(words.metric(metric))
        made += [TableColumn(short, name, number=True) for name in ("n", "p50", "p95", "p99")]
    return made


def row(item: ArmLatency, ratios: Mapping[_Key, Finding]) -> list[TableCell]:
    """Return an arm's latency as a row of `columns`."""
    cells = [
        TableCell(words.scope(item.cohort)),
        TableCell(item.arm.value),
        markup.numeric(words.count(item.generations), item.generations),
        markup.numeric(words.count(item.errors), item.errors),
    ]
    for metric in LATENCIES:
        percentiles: Percentiles = getattr(item, f"{metric}_s")
        cells.append(markup.numeric(words.count(percentiles.n), percentiles.n))
        for name in ("p50", "p95", "p99"):
            seconds: float | None = getattr(percentiles, name)
            key = (item.cohort, metric, f"{name}_ratio")
            finding = ratios.get(key) if item.arm is Arm.CANDIDATE else None
            cells.append(markup.numeric(_time(seconds, finding), seconds))
    return cells


def _time(seconds: float | None, finding: Finding | None) -> str:
    shown = words.milliseconds(seconds)
    if finding is None or finding.estimate is None:
        return shown
    return markup.stacked(shown, f"{words.ratio(finding.estimate)} baseline")
