"""One rollout: the verdict, the evidence for it, and the answers themselves."""

import time
from collections.abc import Iterable
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import RolloutOverview, Verdict
from dashboard import markup, states, words
from dashboard.sections import acceptance, findings, latency, pair_explorer, quality, verdict_banner
from dashboard.source import Source

ALL = "All cohorts"


class _Scoped(Protocol):
    @property
    def cohort(self) -> str | None: ...


S = TypeVar("S", bound=_Scoped)


def show(client: Client, source: Source, zone: ZoneInfo | None) -> None:
    """Draw the rollout that the address bar names, or ask which."""
    overviews = {overview.rollout: overview for overview in client.rollouts()}
    name = st.query_params.get("rollout")
    if not overviews:
        st.html(markup.title("Rollout"))
        states.empty(source)
    elif name is None:
        st.html(markup.title("Which rollout?"))
        st.html(markup.bullets(markup.rollout_link(rollout) for rollout in overviews))
    elif name not in overviews:
        states.unknown_rollout(name, list(overviews))
    else:
        _show_rollout(client, source, overviews[name], zone)


def _show_rollout(
    client: Client, source: Source, overview: RolloutOverview, zone: ZoneInfo | None
) -> None:
    st.html(markup.title(overview.rollout, _about(overview)))
    stored = next(iter(client.verdicts(overview.rollout, limit=1)), None)
    if stored is None:
        verdict_banner.missing(overview)
    else:
        verdict_banner.show(stored, overview, zone)
    cohort = _choose_cohort(overview)
    if stored is not None:
        _show_evidence(stored.verdict, cohort)
    st.subheader("Pairs", anchor="pairs")
    pair_explorer.show(client, source.address, overview.rollout, cohort, zone)


def _about(overview: RolloutOverview) -> str:
    parts = [
        words.counted(overview.pairs, "complete pair"),
        f"last data {words.age(overview.last_end_unix_ns, time.time_ns())}",
    ]
    if overview.quality_flagged:
        parts.append(f"⚠ {words.counted(overview.quality_flagged, 'contract violation')}")
    return " · ".join(parts)


def _choose_cohort(overview: RolloutOverview) -> str | None:
    """Return the chosen cohort, kept in the address bar; `None` is all of them."""
    options = (ALL, *overview.cohorts)
    asked = st.query_params.get("cohort")
    chosen = st.segmented_control(
        "Cohort",
        options=range(len(options)),
        default=options.index(asked) if asked in overview.cohorts else 0,
        format_func=lambda position: markup.label(options[position]),
        required=True,
        key=f"cohort {overview.rollout}",
    )
    cohort = options[chosen] if chosen else None
    if cohort is None:
        st.query_params.pop("cohort", None)
    elif cohort != asked:
        st.query_params["cohort"] = cohort
    return cohort


def _show_evidence(verdict: Verdict, cohort: str | None) -> None:
    st.subheader("Findings", anchor="findings")
    findings.show(_narrowed(verdict.findings, cohort))
    st.subheader("Latency", anchor="latency")
    latency.show(_narrowed(verdict.latency, cohort))
    st.subheader("Acceptance", anchor="acceptance")
    acceptance.show(_narrowed(verdict.acceptance, cohort))
    st.subheader("Quality", anchor="quality")
    quality.show(_narrowed(verdict.quality, cohort))


def _narrowed(items: Iterable[S], cohort: str | None) -> list[S]:
    return [item for item in items if cohort is None or item.cohort == cohort]
