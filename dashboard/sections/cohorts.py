"""The outcome of each cohort."""

from collections.abc import Mapping, Sequence

import streamlit as st

from collector.contract import Finding, Outcome, Role
from dashboard import markup, words
from evals.report.findings_by_margin import worst_first

_MARKS = {
    Outcome.PASS: "within margin",
    Outcome.FAIL: "beyond margin",
    Outcome.INCONCLUSIVE: "undecided",
}


def show(findings: Sequence[Finding], rollout: str) -> None:
    """Draw a card per cohort, worst first, linked to the page filtered by it."""
    by_cohort = worst_of_cohorts(findings)
    if not by_cohort:
        return
    st.html(markup.heading("For whom? The deciding cells of each cohort, worst first", level=2))
    st.html(
        markup.chips(
            (worst.outcome, _card(cohort, worst, findings, rollout))
            for cohort, worst in by_cohort.items()
        )
    )


def worst_of_cohorts(findings: Sequence[Finding]) -> Mapping[str, Finding]:
    """Return the worst deciding finding of each cohort, the worst cohort first."""
    found: dict[str, Finding] = {}
    for finding in worst_first(findings):
        if finding.cohort is not None and finding.role is not Role.REPORT:
            found.setdefault(finding.cohort, finding)
    return found


def _card(cohort: str, worst: Finding, findings: Sequence[Finding], rollout: str) -> str:
    cells = [f for f in findings if f.cohort == cohort and f.role is not Role.REPORT]
    alike = len([f for f in cells if f.outcome is worst.outcome])
    said = f"{alike} of {words.counted(len(cells), 'cell')} {_MARKS[worst.outcome]}"
    name = markup.link("rollout", cohort, {"rollout": rollout, "cohort": cohort})
    icon = words.OUTCOME_ICONS[worst.outcome]
    return markup.stacked(markup.joined((icon, name)), said)
