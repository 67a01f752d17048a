"""One rollout: the verdict, the cohorts that it covers, and the evidence."""

import time
from collections.abc import Callable, Iterable
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
        verdict_banner.show(stored, overview)
        cohorts.show(stored.verdict, rollout)
        verdict_banner.show_reasons(stored.verdict.reasons)
        verdict_banner.show_provenance(stored, zone)
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
    sections: dict[str, Callable[[], None]] = {
        "traffic": lambda: traffic.show(client, source, overview, cohort, zone),
        "distributions": lambda: distributions.show(client, source, overview, cohort),
    }
    if stored is not None:
        sections = _of_verdict(stored.verdict, cohort) | sections
    titles = [name.capitalize() for name in sections]
    chosen = address.choose("Section", "section", list(sections), of=rollout, titles=titles)
    st.header(chosen.capitalize(), anchor=chosen)
    sections[chosen]()
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


def _of_verdict(verdict: Verdict, cohort: str | None) -> dict[str, Callable[[], None]]:
    """Return what draws each section of a verdict's evidence, by the section's name."""
    found = narrowed(verdict.findings, cohort)
    sections: dict[str, Callable[[], None]] = {
        "findings": lambda: findings.show(found),
        "latency": lambda: latency.show(narrowed(verdict.latency, cohort), found),
    }
    counted = any(item.rate is not None for item in verdict.acceptance)
    if counted or verdict.change is None or verdict.change.is_of_drafts:
        drafts = verdict.drafts_by_load if cohort is None else ()
        accepted = narrowed(verdict.acceptance, cohort)
        sections["acceptance"] = lambda: acceptance.show(accepted, drafts)
    sections["quality"] = lambda: _show_quality(verdict, cohort)
    if verdict.capacity:
        measured = narrowed(verdict.capacity, cohort)
        sections["capacity"] = lambda: capacity.show(measured, verdict.goodput_ms)
    sections["cost"] = lambda: cost.show(narrowed(verdict.costs, cohort), found)
    return sections


def _show_quality(verdict: Verdict, cohort: str | None) -> None:
    quality.show(narrowed(verdict.quality, cohort))
    structured_answers.show(narrowed(verdict.structured_answers, cohort))
    divergence.show(narrowed(verdict.divergence, cohort))
    sentinel_answers.show(verdict.sentinels)


def narrowed(items: Iterable[S], cohort: str | None) -> list[S]:
    """Return the items of the cohort; `None` returns all."""
    return [item for item in items if cohort is None or item.cohort == cohort]
