"""Latency percentiles of both arms."""

from collections.abc import Sequence

import streamlit as st

from collector.contract import ArmLatency, Percentiles
from dashboard import charts, markup, words
from dashboard.markup import Cell, Column

_FIELDS = (
    ("ttft_s", "TTFT: time to first token"),
    ("tpot_s", "TPOT: time per output token"),
    ("e2e_s", "End to end"),
)
_SHORT = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "End to end"}


def show(latency: Sequence[ArmLatency]) -> None:
    """Draw TTFT, TPOT and end-to-end percentiles, and the same numbers as a table."""
    if not latency:
        st.html(markup.note("The verdict has no latency here."))
        return
    signs = ", ".join(f"{shape.sign} {name}" for name, shape in charts.SHAPES.items())
    st.html(
        markup.note(
            f"{signs} over the paired generations that succeeded: exact sample percentiles "
            "(R-7), not a sketch's."
        )
    )
    with st.container(key="charts-latency"):
        columns = st.columns(len(_FIELDS))
    for column, (field, title) in zip(columns, _FIELDS, strict=True):
        with column:
            st.html(markup.heading(title))
            st.altair_chart(charts.latency_range(latency, field), alt=f"{title}, by cohort and arm")
    st.html(markup.table("Latency, exact percentiles (R-7)", _columns(), map(_row, latency)))


def _columns() -> list[Column]:
    columns = [
        Column("Cohort"),
        Column("Arm"),
        Column("Generations", number=True),
        Column("Errors", number=True),
    ]
    for field, _ in _FIELDS:
        columns.append(Column(_SHORT[field], "n", number=True))
        columns += [Column(_SHORT[field], name, number=True) for name in ("p50", "p95", "p99")]
    return columns


def _row(item: ArmLatency) -> list[Cell]:
    cells = [
        Cell(words.scope(item.cohort)),
        Cell(item.arm.value),
        markup.numeric(words.count(item.generations), item.generations),
        markup.numeric(words.count(item.errors), item.errors),
    ]
    for field, _ in _FIELDS:
        percentiles: Percentiles = getattr(item, field)
        cells.append(markup.numeric(words.count(percentiles.n), percentiles.n))
        cells += [
            markup.numeric(words.milliseconds(seconds), seconds)
            for seconds in (percentiles.p50, percentiles.p95, percentiles.p99)
        ]
    return cells
