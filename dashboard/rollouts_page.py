"""The landing page: one line per rollout, with its verdict."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import (
    Acceptance,
    Arm,
    Finding,
    Outcome,
    Role,
    RolloutOverview,
    StoredVerdict,
    Switch,
    SwitchState,
)
from dashboard import address, markup, refreshing, states, words
from dashboard.markup import TableCell, TableColumn
from dashboard.sections import unpaired
from dashboard.sections.cohorts import worst_of_cohorts
from dashboard.source import Source
from evals.report.findings_by_margin import worst_first

STALE_AFTER_NS = 24 * 3600 * 1_000_000_000
REFRESH = "30s"
PAGE = 25
"""Rollouts on a page: each costs two requests to the collector."""
_ORDERS: Mapping[str, Callable[[RolloutOverview], int]] = {
    "Newest data": lambda overview: -overview.last_end_unix_ns,
    "Most pairs": lambda overview: -overview.pairs,
    "Most violations": lambda overview: -overview.quality_flagged,
}
_VERDICTS: Mapping[str, Outcome | None] = {
    **{words.OUTCOME_WORDS[outcome]: outcome for outcome in Outcome},
    "No verdict": None,
}
_COLUMNS = (
    TableColumn("Rollout", "and its cohorts"),
    TableColumn("Verdict", "and what decided it"),
    TableColumn("Complete pairs", "generations per arm", number=True),
    TableColumn("Worst cohort", "and its worst cell"),
    TableColumn("End-to-end time", "candidate ÷ baseline", number=True),
    TableColumn("Quality", "candidate − baseline", number=True),
    TableColumn("Acceptance", "all cohorts", number=True),
    TableColumn("Switch", "who set it"),
    TableColumn("Last data", number=True),
)


class _Filters(NamedTuple):
    """The viewer's choices."""

    text: str
    """Text in the name of the rollout or of one of its cohorts."""
    verdict: str | None
    """One of `_VERDICTS`; `None` does not filter."""

    def keeps(self, client: Client, one: RolloutOverview) -> bool:
        if not any(self.text in name.casefold() for name in (one.rollout, *one.cohorts)):
            return False
        if self.verdict is None:
            return True
        stored = client.newest_verdict(one.rollout)
        return _VERDICTS[self.verdict] is (None if stored is None else stored.verdict.outcome)


def show(client: Client, source: Source, _zone: ZoneInfo | None = None) -> None:
    """Draw the table of rollouts, or commands to run if there are none."""
    st.html(markup.title("Rollouts", "May we ship it, and for whom?"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = address.typed("Name or cohort contains", "find").casefold()
        verdict = address.narrow("Verdict", "verdict", list(_VERDICTS))
        order = address.choose("Order", "order", list(_ORDERS))
    # Redrawn alone, so that the page keeps its scroll position and choices.
    refreshing.every(
        REFRESH, source, lambda: _table(client, source, _Filters(text, verdict), order)
    )
    if address.ticked("Unpaired generations", "unpaired"):
        unpaired.show(client, _zone)


def _table(client: Client, source: Source, filters: _Filters, order: str) -> None:
    stored = client.rollouts()
    if not stored:
        states.empty(source)
        return
    found = sorted((one for one in stored if filters.keeps(client, one)), key=_ORDERS[order])
    if not found:
        st.html(markup.note(f"None of {words.counted(len(stored), 'rollout')} matches."))
        return
    first = _page(len(found))
    now_unix_ns = time.time_ns()
    rows = [_row(client, overview, now_unix_ns) for overview in found[first : first + PAGE]]
    st.html(markup.table(f"{order} first", _COLUMNS, rows, fit="cards"))


def _page(rollouts: int) -> int:
    if rollouts <= PAGE:
        return 0
    pages = (rollouts + PAGE - 1) // PAGE
    chosen: int = st.number_input(
        f"Page, of {words.count(pages)} ({words.counted(rollouts, 'rollout')})", 1, pages, 1
    )
    return (chosen - 1) * PAGE


def _row(client: Client, overview: RolloutOverview, now_unix_ns: int) -> list[TableCell]:
    rollout = overview.rollout
    stored = client.newest_verdict(rollout)
    findings = () if stored is None else stored.verdict.findings
    accepted = None if stored is None else _accepted(stored.verdict.acceptance)
    marks = _marks(overview, stored, now_unix_ns)
    sides = (
        f"{words.count(overview.baseline_generations)} baseline, "
        f"{words.count(overview.candidate_generations)} candidate"
    )
    name = markup.joined((markup.rollout_link(rollout), *(markup.badge(m) for m in marks)))
    return [
        TableCell(markup.stacked(name, words.listed(overview.cohorts))),
        TableCell(_verdict(stored, rollout)),
        TableCell(markup.stacked(words.count(overview.pairs), sides), overview.pairs, number=True),
        TableCell(_worst(findings)),
        markup.numeric(*_time(_speed(findings))),
        markup.numeric(*_estimate(_quality(findings))),
        markup.numeric(*_acceptance(accepted)),
        TableCell(_switch(client.switch(rollout))),
        markup.numeric(_freshness(overview, now_unix_ns)),
    ]


def _marks(
    overview: RolloutOverview,
    stored: StoredVerdict | None,
    now_unix_ns: int,
) -> list[str]:
    marks = []
    sides = (overview.baseline_generations, overview.candidate_generations)
    if not all(sides):
        marks.append("one arm only")
    elif overview.spec_draft_tokens is None:
        marks.append("A/A: no arm speculates")
    if now_unix_ns - overview.last_end_unix_ns > STALE_AFTER_NS:
        marks.append("stale: no data for a day")
    if stored is not None and overview.last_end_unix_ns > stored.posted_unix_ns:
        marks.append("verdict older than the data")
    return marks


def _verdict(stored: StoredVerdict | None, rollout: str) -> str:
    if stored is None:
        return markup.stacked("No verdict yet", f"Run: draftgate gate {words.argument(rollout)}")
    return markup.stacked(
        markup.outcome(stored.verdict.outcome), words.plain(stored.verdict.summary)
    )


def _worst(findings: Sequence[Finding]) -> str:
    for cohort, finding in worst_of_cohorts(findings).items():
        said = f"{cohort}: {words.OUTCOME_WORDS[finding.outcome].lower()}"
        return markup.stacked(said, words.with_estimate(finding))
    return words.ABSENT


def _time(finding: Finding | None) -> tuple[str, float | None]:
    if finding is None or finding.estimate is None:
        return words.ABSENT, None
    about = f"{words.ratio(finding.estimate)}, {words.limits(finding)}"
    return markup.stacked(words.change_of_time(finding.estimate), about), finding.estimate


def _estimate(finding: Finding | None) -> tuple[str, float | None]:
    if finding is None:
        return words.ABSENT, None
    shown = words.in_unit(finding.estimate, words.unit_of(finding.unit, finding.stat))
    about = words.limits(finding)
    if finding.unit == "difference":
        about = f"{words.metric(finding.metric)}, {about}"
    return markup.stacked(shown, about), finding.estimate


def _acceptance(accepted: Acceptance | None) -> tuple[str, float | None]:
    if accepted is None:
        return words.ABSENT, None
    shown = markup.stacked(
        words.acceptance_rate(accepted.rate), words.acceptance_length(accepted.length)
    )
    return shown, accepted.rate


def _switch(log: Sequence[SwitchState]) -> str:
    if not log:
        return "never set"
    word = "on" if log[0].state is Switch.ON else "■ off"
    return markup.stacked(word, log[0].who)


def _freshness(overview: RolloutOverview, now_unix_ns: int) -> str:
    age = words.age(overview.last_end_unix_ns, now_unix_ns)
    if not overview.quality_flagged:
        return age
    flagged = words.counted(overview.quality_flagged, "contract violation")
    return markup.stacked(age, f"⚠ {flagged}")


def _speed(findings: Sequence[Finding]) -> Finding | None:
    """Return the pooled end-to-end ratio of geometric means, if the verdict has one."""
    for finding in findings:
        if (finding.cohort, finding.metric, finding.stat) == (None, "e2e", "geomean_ratio"):
            return finding
    return None


def _quality(findings: Sequence[Finding]) -> Finding | None:
    """Return the worst pooled finding on scores, without failures."""
    pooled = [
        f
        for f in findings
        if f.cohort is None and f.unit == "difference" and f.metric != "failures"
    ]
    measured = [f for f in pooled if f.estimate is not None and f.role is not Role.REPORT]
    return next(iter(worst_first(measured)), None)


def _accepted(acceptance: Sequence[Acceptance]) -> Acceptance | None:
    """Return the candidate's acceptance over all cohorts, if the verdict has it."""
    for item in acceptance:
        if item.cohort is None and item.arm is Arm.CANDIDATE and item.rate is not None:
            return item
    return None
