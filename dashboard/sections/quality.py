"""Quality in pairs: wins, losses and ties of each metric."""

from collections.abc import Sequence

import streamlit as st

from collector.contract import QualityCounts
from dashboard import charts, markup, words
from dashboard.drawing import draw
from dashboard.markup import TableCell, TableColumn

COLUMNS = (
    TableColumn("Metric"),
    TableColumn("Cohort"),
    TableColumn("Baseline", "mean score, 0 to 1", number=True),
    TableColumn("Candidate", "mean score, 0 to 1", number=True),
    TableColumn("Losses", "candidate lower", number=True),
    TableColumn("Ties", "equal", number=True),
    TableColumn("Wins", "candidate higher", number=True),
    TableColumn("Scored", "pairs", number=True),
    TableColumn("Unscored", "pairs", number=True),
)


def show(quality: Sequence[QualityCounts]) -> None:
    """Draw losses against wins, and the means and counts as a table."""
    if not quality:
        st.html(markup.note("No metric has scores here. Run “draftgate evaluate” first."))
        return
    draw(charts.wins_and_losses(quality), alt="Losses and wins of the candidate")
    st.html(markup.table("Scores, over pairs scored on both sides", COLUMNS, map(row, quality)))


def row(item: QualityCounts) -> list[TableCell]:
    """Return a metric's counts as a row of `COLUMNS`."""
    return [
        TableCell(words.metric(item.metric)),
        TableCell(words.scope(item.cohort)),
        markup.numeric(words.score(item.baseline_mean), item.baseline_mean),
        markup.numeric(words.score(item.candidate_mean), item.candidate_mean),
        *(
            markup.numeric(words.count(n), n)
            for n in (item.losses, item.ties, item.wins, item.n, item.unscored)
        ),
    ]
