"""Cost per 1,000 output tokens, if the policy has prices."""

from collections.abc import Sequence

import streamlit as st

from collector.contract import Finding
from dashboard import markup, words
from dashboard.markup import Cell, Column
from evals.findings_by_margin import worst_first

METRIC = "cost_per_1k_output_tokens"
_COLUMNS = (
    Column("Cohort"),
    Column("Outcome", "and the cell's role"),
    Column("Cost per 1\u202f000 output tokens", "candidate ÷ baseline", number=True),
    Column("Limits", "one-sided", number=True),
    Column("Margin", number=True),
    Column("n", "pairs", number=True),
)


def show(findings: Sequence[Finding]) -> None:
    """Draw the cost ratio of each scope, or explain what it needs."""
    found = [finding for finding in worst_first(findings) if finding.metric == METRIC]
    if not found:
        st.html(
            markup.note(
                "The policy has no cost cell here. Give it “prices” (what an hour of each route "
                "costs) and a rule on cost_per_1k_output_tokens."
            )
        )
        return
    st.html(markup.table("Cost, time in flight at the policy's prices", _COLUMNS, map(_row, found)))


def _row(finding: Finding) -> list[Cell]:
    unit = words.unit_of(finding.unit, finding.stat)
    role = words.ROLE_WORDS[finding.role]
    return [
        Cell(words.scope(finding.cohort)),
        Cell(markup.stacked(markup.outcome(finding.outcome), role)),
        markup.numeric(words.in_unit(finding.estimate, unit), finding.estimate),
        markup.numeric(words.limits(finding)),
        markup.numeric(words.margin(finding), finding.margin),
        markup.numeric(words.count(finding.n), finding.n),
    ]
