"""The landing page: every rollout in a line, its verdict first."""

import time
from collections.abc import Sequence

import streamlit as st

from collector.client import Client
from collector.contract import Acceptance, Arm, Finding, RolloutOverview, StoredVerdict
from dashboard import markup, states, words
from dashboard.markup import Cell, Column
from dashboard.source import Source

_COLUMNS = (
    Column("Rollout", "and its cohorts"),
    Column("Verdict"),
    Column("Complete pairs", "generations a side", number=True),
    Column("Acceptance", "candidate, all cohorts", number=True),
    Column("End-to-end time", "geometric mean, candidate ÷ baseline", number=True),
    Column("Last data", number=True),
)


def show(client: Client, source: Source) -> None:
    """Draw the table of rollouts, or what to run where there is none."""
    st.html(markup.title("Rollouts"))
    overviews = client.rollouts()
    if not overviews:
        states.empty(source)
        return
    newest = sorted(overviews, key=lambda overview: -overview.last_end_unix_ns)
    now_unix_ns = time.time_ns()
    rows = [
        _row(overview, client.verdicts(overview.rollout, limit=1), now_unix_ns)
        for overview in newest
    ]
    st.html(markup.table("Newest data first", _COLUMNS, rows, fit="cards"))


def _row(
    overview: RolloutOverview, verdicts: Sequence[StoredVerdict], now_unix_ns: int
) -> list[Cell]:
    stored = verdicts[0] if verdicts else None
    speed = None if stored is None else _speed(stored.verdict.findings)
    accepted = None if stored is None else _accepted(stored.verdict.acceptance)
    sides = (
        f"{words.count(overview.baseline_generations)} baseline, "
        f"{words.count(overview.candidate_generations)} candidate"
    )
    return [
        Cell(markup.stacked(markup.rollout_link(overview.rollout), words.listed(overview.cohorts))),
        Cell(_verdict(stored, overview.rollout)),
        Cell(
            markup.stacked(words.count(overview.pairs), sides),
            overview.pairs,
            number=True,
        ),
        markup.numeric(*_acceptance(accepted)),
        markup.numeric(*_speed_up(speed)),
        markup.numeric(_freshness(overview, now_unix_ns)),
    ]


def _verdict(stored: StoredVerdict | None, rollout: str) -> str:
    if stored is None:
        return markup.stacked("No verdict yet", f"Run: draftgate gate {words.argument(rollout)}")
    return markup.stacked(markup.outcome(stored.verdict.outcome), stored.verdict.summary)


def _acceptance(accepted: Acceptance | None) -> tuple[str, float | None]:
    if accepted is None:
        return words.ABSENT, None
    shown = markup.stacked(
        words.acceptance_rate(accepted.rate), words.acceptance_length(accepted.length)
    )
    return shown, accepted.rate


def _speed_up(finding: Finding | None) -> tuple[str, float | None]:
    if finding is None:
        return words.ABSENT, None
    unit = finding.unit
    limits = f"{words.limit(finding.lower, unit)} to {words.limit(finding.upper, unit)}"
    return markup.stacked(words.in_unit(finding.estimate, unit), limits), finding.estimate


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


def _accepted(acceptance: Sequence[Acceptance]) -> Acceptance | None:
    """Return the candidate's acceptance over all cohorts, if the verdict has it."""
    for item in acceptance:
        if item.cohort is None and item.arm is Arm.CANDIDATE and item.rate is not None:
            return item
    return None
