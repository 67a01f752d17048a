"""Answers to the prompts that a run asked again and again."""

from collections.abc import Sequence

import streamlit as st

from collector.contract import SentinelAnswers
from dashboard import markup, words
from dashboard.markup import TableCell, TableColumn
from evals.report.sentinel_words import first_words

TITLE = "Sentinels: greedy prompts that the run repeats"
COLUMNS = (
    TableColumn("Prompt"),
    TableColumn("Arm", "and its launch"),
    TableColumn("Answers", number=True),
    TableColumn("Changed", "unlike the most frequent", number=True),
    TableColumn("First change"),
)


def show(found: Sequence[SentinelAnswers]) -> None:
    """Draw the answers as a table; nothing if the run asked no prompt again."""
    if found:
        st.html(markup.table(TITLE, COLUMNS, map(row, found), fit="cards"))


def row(item: SentinelAnswers) -> list[TableCell]:
    """Return one sentinel's answers by an arm as a row of `COLUMNS`."""
    launch = item.launch or ""
    return [
        TableCell(item.sentinel),
        TableCell(markup.stacked(item.arm.value, launch) if launch else item.arm.value),
        markup.numeric(words.count(item.answers), item.answers),
        markup.numeric(words.count(item.changed), item.changed),
        TableCell(first_words(item) or words.ABSENT),
    ]
