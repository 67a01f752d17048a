"""The findings: a forest plot against the margins, and the same numbers as a table."""

from collections.abc import Sequence

import streamlit as st

from collector.contract import Finding
from dashboard import address, charts, markup, words
from dashboard.drawing import draw
from dashboard.markup import TableCell, TableColumn
from evals.gate.wording import besides_numbers
from evals.report.findings_by_margin import worst_first

_ORDERS = {"worst": "Worst first", "cohort": "By cohort", "metric": "By metric"}
PANELS = (
    ("ratio", "Latency and cost: candidate ÷ baseline, on a log scale"),
    ("difference", "Quality and errors: candidate − baseline"),
)
COLUMNS = (
    TableColumn("Finding", "cohort, metric"),
    TableColumn("Outcome", "and the cell's role"),
    TableColumn("Estimate", number=True),
    TableColumn("Lower limit", "one-sided", number=True),
    TableColumn("Upper limit", "one-sided", number=True),
    TableColumn("Margin", number=True),
    TableColumn("n", "pairs", number=True),
    TableColumn("n needed", "pairs, or launches", number=True),
    TableColumn("Method", "and why it is inconclusive"),
)


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Sort as chosen in the address bar; within each group the worst comes first."""
    order = address.choose("Order", "order", list(_ORDERS), titles=list(_ORDERS.values()))
    worst = worst_first(findings)
    if order == "cohort":
        return sorted(worst, key=lambda f: (f.cohort is not None, f.cohort or ""))
    if order == "metric":
        return sorted(worst, key=lambda f: (f.metric, f.stat))
    return worst


def show(findings: Sequence[Finding]) -> None:
    """Draw a forest plot for each unit, and the table of all findings."""
    ordered = _ordered(findings)
    if not ordered:
        st.html(markup.note("The verdict has no finding here."))
        return
    st.html(
        markup.note(
            "A line runs between two one-sided limits; the mark on it is the estimate. The upright "
            "bar is the margin, and the tinted side lies beyond it: a cell passes if its whole "
            "line is outside the tint."
            + (
                " A ring is the value of one launch of the servers."
                if any(finding.launches for finding in ordered)
                else ""
            )
        )
    )
    for unit, title in PANELS:
        drawn = [finding for finding in ordered if finding.unit == unit]
        if drawn:
            st.html(markup.heading(title))
            draw(charts.forest(drawn, unit), alt=f"Forest plot. {title}.")
    without = [finding for finding in ordered if finding.estimate is None]
    if without:
        st.html(markup.note("Cells without an estimate:"))
        st.html(markup.bullets(f"{words.cell(finding)}: {finding.message}" for finding in without))
    st.html(markup.table("All findings", COLUMNS, map(row, ordered), fit="cards"))


def row(finding: Finding) -> list[TableCell]:
    """Return a finding as a row of `COLUMNS`."""
    unit = words.unit_of(finding.unit, finding.stat)
    return [
        TableCell(markup.stacked(words.cell(finding), words.compared(unit))),
        TableCell(markup.stacked(markup.outcome(finding.outcome), words.ROLE_WORDS[finding.role])),
        markup.numeric(words.in_unit(finding.estimate, unit), finding.estimate),
        markup.numeric(words.limit(finding.lower, unit), finding.lower),
        markup.numeric(words.limit(finding.upper, unit), finding.upper),
        markup.numeric(words.margin(finding), finding.margin),
        markup.numeric(words.count(finding.n), finding.n),
        markup.numeric(words.pairs_needed(finding), finding.n_needed),
        TableCell(_method(finding)),
    ]


def _method(finding: Finding) -> str:
    method = f"{finding.method}, {words.confidence(finding)}"
    return markup.stacked(words.plain(besides_numbers(finding)), method)
