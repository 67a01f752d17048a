"""One rollout: the verdict, the cohorts that it covers, and the evidence."""

import time
from collections.abc import Iterable
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import RolloutOverview, StoredVerdict, Verdict
from dashboard import address, markup, refreshing, rollout_choice, states, words
from dashboard.sections import (
    acceptance,
    arms,
    capacity,
    cohorts,
    cost,
    distributions,
    divergence,
    findings,
    latency,
    looks,
    quality,
    sentinel_answers,
    structured_answers,
    traffic,
    verdict_banner,
)
from dashboard.source import Source

EVERY = "All cohorts"


class _Scoped(Protocol):
    @property
    def cohort(self) -> str | None: ...


S = TypeVar("S", bound=_Scoped)


def show(client: Client, source: Source, zone: ZoneInfo | None) -> None:
    """Draw the chosen rollout, or a list to choose from."""
    overview = rollout_choice.choose(client, source, "rollout")
    if overview is not None:
        _show_rollout(client, source, overview, zone)


def _show_rollout(
    client: Client, source: Source, overview: RolloutOverview, zone: ZoneInfo | None
) -> None:
    rollout = overview.rollout
    st.html(markup.title(rollout, _about(overview)))
    stored = client.newest_verdict(rollout)
    if not (overview.baseline_generations and overview.candidate_generations):
        states.one_arm(overview)
    elif stored is None:
        verdict_banner.missing(overview)
    if stored is not None:
        verdict_banner.show(stored, overview, zone)
        cohorts.show(stored.verdict.findings, rollout)
        looks.show(stored.verdict)
        if stored.verdict.family is not None:
            arms.show(client, stored.verdict.family, rollout)
    # A choice below redraws only this part; the part above is not read or drawn again.
    refreshing.every(None, source, lambda: _show_scope(client, source, overview, stored, zone))


def _show_scope(
    client: Client,
    source: Source,
    overview: RolloutOverview,
    stored: StoredVerdict | None,
    zone: ZoneInfo | None,
) -> None:
    rollout = overview.rollout
    cohort = address.narrow("Cohort", "cohort", overview.cohorts, of=rollout, every=EVERY)
    if stored is not None:
        _show_evidence(stored.verdict, cohort)
    st.subheader("Traffic", anchor="traffic")
    traffic.show(client, source, overview, cohort, zone)
    st.subheader("Distributions", anchor="distributions")
    distributions.show(client, source, overview, cohort)
    st.html(
        markup.link("pairs", "Read the answers, pair by pair →", _query(overview, cohort)),
    )


def _query(overview: RolloutOverview, cohort: str | None) -> dict[str, str]:
    return {"rollout": overview.rollout} | ({} if cohort is None else {"cohort": cohort})


def _about(overview: RolloutOverview) -> str:
    parts = [
        words.counted(overview.pairs, "complete pair"),
        f"last data {words.age(overview.last_end_unix_ns, time.time_ns())}",
    ]
    if overview.quality_flagged:
        parts.append(f"⚠ {words.counted(overview.quality_flagged, 'contract violation')}")
    return " · ".join(parts)


def _show_evidence(verdict: Verdict, cohort: str | None) -> None:
    st.subheader("Findings", anchor="findings")
    shown = narrowed(verdict.findings, cohort)
    findings.show(shown)
    st.subheader("Latency", anchor="latency")
    latency.show(narrowed(verdict.latency, cohort), shown)
    counted = any(item.rate is not None for item in verdict.acceptance)
    if counted or verdict.change is None or verdict.change.is_of_drafts:
        st.subheader("Acceptance", anchor="acceptance")
        drafts = verdict.drafts_by_load if cohort is None else ()
        acceptance.show(narrowed(verdict.acceptance, cohort), drafts)
    st.subheader("Quality", anchor="quality")
    quality.show(narrowed(verdict.quality, cohort))
    structured_answers.show(narrowed(verdict.structured_answers, cohort))
    divergence.show(narrowed(verdict.divergence, cohort))
    if verdict.capacity:
        st.subheader("Capacity", anchor="capacity")
        capacity.show(narrowed(verdict.capacity, cohort), verdict.goodput_ms)
    sentinel_answers.show(verdict.sentinels)
    st.subheader("Cost", anchor="cost")
    cost.show(narrowed(verdict.costs, cohort), shown)


def narrowed(items: Iterable[S], cohort: str | None) -> list[S]:
    """Return the items of the cohort; `None` returns all."""
    return [item for item in items if cohort is None or item.cohort == cohort]
