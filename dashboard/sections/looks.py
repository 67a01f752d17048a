"""The declared looks of a run that ends when it is decided."""

import streamlit as st

from collector.contract import ScopeLooks, Verdict
from dashboard import markup, words
from dashboard.markup import TableCell, TableColumn
from evals.report.answers import look_decision

TITLE = "Run until it is decided: the looks of each scope"
COLUMNS = (
    TableColumn("Scope"),
    TableColumn("Decision"),
    TableColumn("Reached", "look", number=True),
    TableColumn("Looks", "declared", number=True),
    TableColumn("Pairs", "up to the look reached", number=True),
    TableColumn("Planned", "pairs", number=True),
)


def show(verdict: Verdict) -> None:
    """Draw the table; nothing for a verdict without declared looks."""
    if not verdict.looks:
        return
    st.html(markup.table(TITLE, COLUMNS, rows(verdict), fit="content"))


def rows(verdict: Verdict) -> list[list[TableCell]]:
    """Return the table's rows, one for the pool and each cohort."""
    return [_row(one, look_decision(one, verdict)) for one in verdict.looks]


def _row(found: ScopeLooks, decision: str) -> list[TableCell]:
    reached = found.pairs[found.taken - 1] if found.taken else 0
    planned = found.pairs[-1] if found.pairs else None
    return [
        TableCell("All cohorts" if found.cohort is None else found.cohort),
        TableCell(decision),
        markup.numeric(words.count(found.taken), found.taken),
        markup.numeric(words.count(len(found.pairs)), len(found.pairs)),
        markup.numeric(words.count(reached), reached),
        markup.numeric(words.count(planned), planned),
    ]
