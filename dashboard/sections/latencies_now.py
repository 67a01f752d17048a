"""Latencies and traffic of the last hour, minute by minute."""

from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import TimeBucket
from dashboard import address, charts, markup, words
from dashboard.drawing import draw

HOUR_S = 3_600
_METRICS = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "End to end"}


def show(client: Client, rollout: str, now_unix_ns: int, zone: ZoneInfo | None) -> None:
    """Draw p50 and p95 of both arms, and how many requests each of them got."""
    metric = address.choose(
        "Latency", "metric", list(_METRICS), of=rollout, titles=list(_METRICS.values())
    )
    now_s = now_unix_ns // 1_000_000_000
    buckets = client.timeseries(rollout, step="minute", start=now_s - HOUR_S)
    if not buckets:
        st.html(markup.note("No request of this rollout began in the last hour."))
        return
    cohorts = sorted({b.summary.cohort for b in buckets if b.summary.cohort is not None})
    cohort = address.narrow("Cohort", "cohort", cohorts, of=rollout) if cohorts else None
    if cohort is None and cohorts:
        # Percentiles of several cohorts cannot be combined, so each cohort is drawn separately.
        st.html(markup.note("p95 of each arm and cohort; choose a cohort to see p50 too."))
    shown = [b for b in buckets if cohort is None or b.summary.cohort == cohort]
    left, right = st.columns(2)
    with left:
        st.html(markup.heading(f"{_METRICS[metric]} by minute"))
        draw(
            charts.latency_over_time(shown, metric, zone, both=cohort is not None),
            alt=f"{_METRICS[metric]} by minute and arm",
        )
        st.html(markup.note(f"Percentiles are estimates within 1 %. {_counted(shown)}"))
    with right:
        st.html(markup.heading("Requests by minute: where the router sends them"))
        draw(charts.requests_over_time(shown, zone), alt="Requests by minute and arm")
        st.html(markup.note(_counted(shown)))


def _counted(buckets: list[TimeBucket]) -> str:
    return f"n = {words.counted(sum(b.summary.generations for b in buckets), 'generation')}."
