"""Capacity by cohort and arm: requests within the bounds of goodput, and throughput."""

from collections.abc import Mapping, Sequence

import streamlit as st

from collector.contract import ArmCapacity
from dashboard import markup, words
from dashboard.markup import Html, TableCell, TableColumn
from evals.report import capacity_words

_COLUMNS = (
    TableColumn("Cohort"),
    TableColumn("Arm"),
    TableColumn("Requests", number=True),
    TableColumn("Good", "within the bounds", number=True),
    TableColumn("Share", "good ÷ requests", number=True),
    TableColumn("Good", "per second", number=True),
    TableColumn("Output tokens", "per second", number=True),
    TableColumn("In flight", "mean", number=True),
)


def show(rows: Sequence[ArmCapacity], bounds_ms: Mapping[str, float]) -> None:
    """Draw the capacity of both arms as a table."""
    st.html(table(rows, bounds_ms))


def table(rows: Sequence[ArmCapacity], bounds_ms: Mapping[str, float]) -> Html:
    """Return the table of both arms' capacity."""
    return markup.table(capacity_words.title(bounds_ms), _COLUMNS, map(_row, rows), fit="cards")


def _row(item: ArmCapacity) -> list[TableCell]:
    exact = (
        item.requests,
        item.good,
        capacity_words.share(item),
        item.good_per_s,
        item.output_tokens_per_s,
        item.in_flight,
    )
    return [
        TableCell(words.scope(item.cohort)),
        TableCell(item.arm.value),
        *map(markup.numeric, capacity_words.numbers(item), exact),
    ]
