"""The outcome of each cohort."""

from collections.abc import Iterator, Mapping, Sequence

import streamlit as st

from collector.contract import Finding, MayShip, Outcome, Role, Verdict
from dashboard import markup, words
from evals.report.answers import cohort_lines
from evals.report.findings_by_margin import worst_first

_MARKS = {
    Outcome.PASS: "within margin",
    Outcome.FAIL: "beyond margin",
    Outcome.INCONCLUSIVE: "undecided",
}


_SAID_BY_CARDS = {Outcome.PASS: MayShip.YES, Outcome.FAIL: MayShip.NO}


def show(verdict: Verdict, rollout: str) -> None:
    """Draw a card per cohort, worst first, linked to the page filtered by it, and more answers."""
    by_cohort = worst_of_cohorts(verdict.findings)
    if by_cohort:
        st.html(markup.heading(f"For whom? {_order(verdict, by_cohort)}", level=2))
        st.html(
            markup.chips(
                (worst.outcome, _card(cohort, worst, verdict.findings, rollout))
                for cohort, worst in by_cohort.items()
            )
        )
    if said := list(map(words.plain, _unsaid(verdict, by_cohort))):
        st.html(markup.bullets(said))


def _order(verdict: Verdict, by_cohort: Mapping[str, Finding]) -> str:
    """Return how the cards are sorted, and why some may be undecided on a pass."""
    is_open = any(worst.outcome is Outcome.INCONCLUSIVE for worst in by_cohort.values())
    if verdict.outcome is Outcome.PASS and is_open:
        return "Cohorts, worst first; an undecided guard does not hold the release up"
    return "Cohorts, worst first"


def _unsaid(verdict: Verdict, by_cohort: Mapping[str, Finding]) -> Iterator[str]:
    """Yield the answers on cohorts that are unknown, or differ from the cohort's card."""
    for one, line in zip(verdict.cohorts, cohort_lines(verdict), strict=True):
        card = by_cohort.get(one.cohort)
        if card is None or _SAID_BY_CARDS.get(card.outcome) is not one.answer:
            yield line


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
