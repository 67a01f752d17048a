"""Traffic in a window: latencies, errors, fallbacks, retries and feedback of both arms."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import (
    P99_FROM,
    Arm,
    ArmSummary,
    FeedbackKind,
    MetricSummary,
    RolloutOverview,
)
from dashboard import address, markup, reading, words
from dashboard.markup import TableCell, TableColumn
from dashboard.source import Source
from evals.profiles.feedback_counts import FeedbackCount

WINDOWS: Mapping[str, int | None] = {
    "all": None,
    "7d": 7 * 86_400,
    "24h": 86_400,
    "1h": 3_600,
    "10min": 600,
}
"""Seconds before the last data."""
_TITLES = ("All data", "Last 7 days", "Last 24 hours", "Last hour", "Last 10 minutes")
_METRICS = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "End to end"}
_COLUMNS = (
    TableColumn("Cohort"),
    TableColumn("Arm"),
    TableColumn("Generations", number=True),
    *(TableColumn(name, "p50 / p95 / p99, ms", number=True) for name in _METRICS.values()),
    TableColumn("Errors", number=True),
    TableColumn("Fallbacks", number=True),
    TableColumn("Retries", "in all", number=True),
    TableColumn("Contract", "violations", number=True),
)
_FEEDBACK = {
    FeedbackKind.THUMBS_UP: "Thumbs up",
    FeedbackKind.THUMBS_DOWN: "Thumbs down",
    FeedbackKind.ESCALATION: "Escalated",
    FeedbackKind.EDIT: "Edited",
}


def show(
    client: Client,
    source: Source,
    overview: RolloutOverview,
    cohort: str | None,
    zone: ZoneInfo | None,
) -> None:
    """Draw the collector's counts in the chosen window."""
    name = address.choose(
        "Window, up to the last data", "window", list(WINDOWS), of=overview.rollout, titles=_TITLES
    )
    start = window_start_s(name, overview)
    summary = reading.summary(client, reading.stamp(source.address, overview), start)
    rows = [row for row in summary if cohort is None or row.cohort == cohort]
    if not rows:
        st.html(markup.note("No request began in this window."))
        return
    st.html(markup.note(_definition(start, zone)))
    ordered = sorted(rows, key=lambda row: (row.cohort or "", row.arm is Arm.CANDIDATE))
    st.html(markup.table("Counted by the collector", _COLUMNS, map(_row, ordered), fit="cards"))
    _show_feedback(client, source, overview, cohort)


def window_start_s(name: str, overview: RolloutOverview) -> int | None:
    """Return a window's start in Unix seconds; `None` means the first generation."""
    length_s = WINDOWS[name]
    last_s = overview.last_end_unix_ns // 1_000_000_000
    return None if length_s is None else last_s - length_s


def _definition(start_s: int | None, zone: ZoneInfo | None) -> str:
    since = "" if start_s is None else f" Since {words.moment(start_s * 10**9, zone)}."
    return (
        "All generations of both arms, paired or not. Percentiles are estimates, 1 % off at most; "
        f"those of the findings are exact. Fewer than {P99_FROM} values have no p99.{since}"
    )


def _row(row: ArmSummary) -> list[TableCell]:
    found = {metric.metric: metric for metric in row.metrics}
    return [
        TableCell(row.cohort or "no cohort"),
        TableCell(row.arm.value),
        markup.numeric(words.count(row.generations), row.generations),
        *(_percentiles(found.get(metric)) for metric in _METRICS),
        markup.numeric(words.share(row.errors, row.generations), row.errors),
        markup.numeric(words.share(row.fallbacks, row.generations), row.fallbacks),
        markup.numeric(words.count(row.retries), row.retries),
        markup.numeric(words.count(row.quality_flagged), row.quality_flagged),
    ]


def _percentiles(metric: MetricSummary | None) -> TableCell:
    if metric is None:
        return markup.numeric(words.ABSENT)
    shown = " / ".join(words.bare_ms(value) for value in (metric.p50, metric.p95, metric.p99))
    return markup.numeric(markup.stacked(shown, f"n = {words.count(metric.n)}"))


def _show_feedback(
    client: Client, source: Source, overview: RolloutOverview, cohort: str | None
) -> None:
    counts = reading.feedback(client, reading.stamp(source.address, overview))
    shown = [count for count in counts if cohort is None or count.cohort == cohort]
    if not shown:
        st.html(markup.note("Nobody gave feedback on these answers (thumbs, escalations, edits)."))
        return
    columns = (
        TableColumn("Cohort"),
        TableColumn("Arm"),
        TableColumn("Generations", "looked at", number=True),
        *(TableColumn(name, number=True) for name in _FEEDBACK.values()),
    )
    rows = [
        _feedback(list(group))
        for _, group in groupby(shown, key=lambda count: (count.cohort, count.arm))
    ]
    st.html(markup.table("Feedback, on the newest generations", columns, rows))


def _feedback(counts: Sequence[FeedbackCount]) -> list[TableCell]:
    first = counts[0]
    by_kind = {count.kind: count for count in counts}
    return [
        TableCell(first.cohort or "no cohort"),
        TableCell(first.arm.value),
        markup.numeric(words.count(first.generations), first.generations),
        *(
            markup.numeric(
                words.share(by_kind[kind].given if kind in by_kind else 0, first.generations)
            )
            for kind in _FEEDBACK
        ),
    ]
