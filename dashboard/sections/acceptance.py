"""Acceptance of drafted tokens, by cohort and by draft position."""

from collections.abc import Sequence

import streamlit as st

from collector.contract import Acceptance, DraftsAtLoad
from dashboard import charts, markup, words
from dashboard.drawing import draw
from dashboard.markup import TableCell, TableColumn
from evals.report.validity_words import load_words

COLUMNS = (
    TableColumn("Cohort"),
    TableColumn("Arm"),
    TableColumn("Acceptance rate", "accepted ÷ drafted", number=True),
    TableColumn("Acceptance length", "bonus token included", number=True),
    TableColumn("Counts"),
    TableColumn("Generations", "counted", number=True),
    TableColumn("Excluded", "counts unusable", number=True),
)
LOAD_TITLE = "Drafts by requests in flight"
LOAD_COLUMNS = (
    TableColumn("In flight", number=True),
    TableColumn("Answers", "of the candidate", number=True),
    TableColumn("Without a draft", number=True),
    TableColumn("Draft tokens per step", "in the other answers", number=True),
)


def show(acceptance: Sequence[Acceptance], drafts: Sequence[DraftsAtLoad]) -> None:
    """Draw the rate by cohort and by position, the drafts by load, and the counts behind all."""
    if not any(item.rate is not None for item in acceptance):
        st.html(markup.note("No arm has usable speculation counts here."))
    else:
        with st.container(key="charts-acceptance"):
            by_cohort, by_position = st.columns(2)
        with by_cohort:
            st.html(markup.heading("By cohort"))
            draw(charts.acceptance_by_cohort(acceptance), alt="Acceptance by cohort")
        with by_position:
            st.html(markup.heading("By draft position"))
            _show_positions(acceptance)
    if drafts:
        st.html(markup.table(LOAD_TITLE, LOAD_COLUMNS, map(load_row, drafts)))
    if acceptance:
        rows = map(row, acceptance)
        st.html(markup.table("Acceptance and its counts", COLUMNS, rows, fit="cards"))


def _show_positions(acceptance: Sequence[Acceptance]) -> None:
    if not any(item.rate_per_pos for item in acceptance):
        st.html(markup.note("No engine reported counts by position."))
        return
    draw(charts.acceptance_by_position(acceptance), alt="Acceptance by draft position")


def load_row(item: DraftsAtLoad) -> list[TableCell]:
    """Return the drafts at one load as a row of `LOAD_COLUMNS`."""
    per_step, share = item.drafts_per_step, item.undrafted / item.answers
    return [
        markup.numeric(load_words(item.in_flight), item.in_flight[0]),
        markup.numeric(words.count(item.answers), item.answers),
        markup.numeric(f"{share:.0%}", share),
        markup.numeric(words.ABSENT if per_step is None else f"{per_step:.2f}", per_step),
    ]


def row(item: Acceptance) -> list[TableCell]:
    """Return an arm's acceptance as a row of `COLUMNS`."""
    return [
        TableCell(words.scope(item.cohort)),
        TableCell(item.arm.value),
        markup.numeric(words.acceptance_rate(item.rate), item.rate),
        markup.numeric(words.acceptance_length(item.length), item.length),
        TableCell(words.draft_counts(item.accepted_tokens, item.draft_tokens, item.steps)),
        markup.numeric(words.count(item.generations), item.generations),
        markup.numeric(words.count(item.excluded), item.excluded),
    ]
