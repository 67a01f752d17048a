"""Cost in money per million output tokens, by the prices of the rollout file."""

from collections.abc import Iterator, Sequence

import streamlit as st

from collector.contract import CostComparison, Finding
from dashboard import markup, words
from dashboard.markup import Html, TableCell, TableColumn
from evals.report import cost_words
from evals.report.findings_by_margin import worst_first

METRIC = "cost_per_1k_output_tokens"
_COLUMNS = (
    TableColumn("Cohort"),
    TableColumn("Baseline", number=True),
    TableColumn("Candidate", number=True),
    TableColumn("Difference", "candidate − baseline", number=True),
    TableColumn("Limits", "one-sided", number=True),
    TableColumn("Rejected drafts", "part of the candidate's", number=True),
    TableColumn("Limits", "one-sided", number=True),
    TableColumn("n", "pairs", number=True),
)
_CELLS = (
    TableColumn("Cohort"),
    TableColumn("Outcome", "and the cell's role"),
    TableColumn("Cost per output token", "candidate ÷ baseline", number=True),
    TableColumn("Limits", "one-sided", number=True),
    TableColumn("Margin", number=True),
    TableColumn("n", "pairs", number=True),
)


def show(costs: Sequence[CostComparison], findings: Sequence[Finding]) -> None:
    """Draw what answers cost and the policy's cells of cost, or explain what they need."""
    parts = list(tables(costs, findings))
    if not parts:
        parts = [
            markup.note(
                "The routes have no prices. Add “prices” to the rollout file: the price of an "
                "accelerator-hour, or of a million tokens."
            )
        ]
    for part in parts:
        st.html(part)


def tables(costs: Sequence[CostComparison], findings: Sequence[Finding]) -> Iterator[Html]:
    """Yield the table of costs with its notes, and that of the policy's cells, if there are any."""
    if costs:
        yield markup.table(cost_words.title(costs), _COLUMNS, map(_cost, costs), fit="cards")
        yield from map(markup.note, cost_words.notes(costs))
    found = [finding for finding in worst_first(findings) if finding.metric == METRIC]
    if found:
        yield markup.table("Cells of cost: time in flight at its price", _CELLS, map(_cell, found))


def _cost(cost: CostComparison) -> list[TableCell]:
    exact = (cost.baseline, cost.candidate, cost.difference, None, cost.rejected_drafts, None)
    shown = (text.replace("-", words.MINUS) for text in cost_words.numbers(cost))
    return [
        TableCell(words.scope(cost.cohort)),
        *map(markup.numeric, shown, exact),
        markup.numeric(words.count(cost.n), cost.n),
    ]


def _cell(finding: Finding) -> list[TableCell]:
    unit = words.unit_of(finding.unit, finding.stat)
    role = words.ROLE_WORDS[finding.role]
    return [
        TableCell(words.scope(finding.cohort)),
        TableCell(markup.stacked(markup.outcome(finding.outcome), role)),
        markup.numeric(words.in_unit(finding.estimate, unit), finding.estimate),
        markup.numeric(words.limits(finding)),
        markup.numeric(words.margin(finding), finding.margin),
        markup.numeric(words.count(finding.n), finding.n),
    ]
