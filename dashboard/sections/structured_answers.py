"""Validity of JSON and tool calls by cohort, load and arm, and where the others break."""

from collections.abc import Iterator, Sequence

import streamlit as st

from collector.contract import AnswerValidity, StructuredAnswers
from dashboard import markup, words
from dashboard.markup import TableCell, TableColumn
from evals.report.validity_words import load_words, place_words, valid_words

_PLACE = "median, middle half; share of the answer"
COLUMNS = (
    TableColumn("Answers"),
    TableColumn("In flight", "when it was asked", number=True),
    TableColumn("Baseline valid", number=True),
    TableColumn("Breaks at character", _PLACE, number=True),
    TableColumn("Candidate valid", number=True),
    TableColumn("Breaks at character", _PLACE, number=True),
)
TITLE = "Valid JSON and tool calls, by requests in flight"


def show(found: Sequence[StructuredAnswers]) -> None:
    """Draw the counts as a table; nothing if no answers were judged."""
    if found:
        st.html(markup.table(TITLE, COLUMNS, map(row, found)))


def row(item: StructuredAnswers) -> list[TableCell]:
    """Return one scope's counts as a row of `COLUMNS`."""
    load = item.in_flight
    return [
        TableCell(words.scope(item.cohort)),
        markup.numeric("any" if load is None else load_words(load), load and load[0]),
        *_side(item.baseline),
        *_side(item.candidate),
    ]


def _side(side: AnswerValidity) -> Iterator[TableCell]:
    share = 1 - side.invalid / side.judged if side.judged else None
    yield markup.numeric(valid_words(side), share)
    yield markup.numeric(place_words(side) or words.ABSENT, side.position_p50)
