"""Divergence of greedy answers: how many diverge, by cohort and load, and at which position."""

from collections.abc import Sequence

import streamlit as st

from collector.contract import DivergedAnswers
from dashboard import markup, words
from dashboard.markup import TableCell, TableColumn
from evals.report.validity_words import load_words

COLUMNS = (
    TableColumn("Answers"),
    TableColumn("Compared", "pairs at temperature 0", number=True),
    TableColumn("Differ", number=True),
    TableColumn("First difference", "median, and middle half; tokens or characters", number=True),
)


TITLE = "Greedy answers that differ from the baseline's"


def show(found: Sequence[DivergedAnswers]) -> None:
    """Draw the counts as a table; nothing if no answers were compared."""
    if found:
        st.html(markup.table(TITLE, COLUMNS, map(row, found)))


def row(item: DivergedAnswers) -> list[TableCell]:
    """Return one scope's counts as a row of `COLUMNS`."""
    return [
        TableCell(_scope(item)),
        markup.numeric(words.count(item.compared), item.compared),
        markup.numeric(words.share(item.diverged, item.compared), item.diverged),
        markup.numeric(_position(item), item.position_p50),
    ]


def _scope(item: DivergedAnswers) -> str:
    if item.in_flight is None:
        return words.scope(item.cohort)
    return f"{load_words(item.in_flight)} in flight"


def _position(item: DivergedAnswers) -> str:
    if item.position_p50 is None:
        return words.ABSENT
    return f"{item.position_p50:.0f} ({item.position_p25:.0f}–{item.position_p75:.0f})"
