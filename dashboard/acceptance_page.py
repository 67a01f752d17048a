"""Acceptance: rates by cohort and position, by request shape, over time, and the advice."""

from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import RolloutOverview
from dashboard import address, charts, markup, reading, rollout_choice, states, words
from dashboard.drawing import draw
from dashboard.rollout_page import narrowed
from dashboard.sections import acceptance, advice
from dashboard.source import Source
from evals.profiles import acceptance as acceptance_profile

_STEPS = {"minute": 6 * 3600, "hour": 14 * 86_400, "day": None}
"""For each time step, the longest span in seconds that is drawn with it."""
_NUMBERS = {
    "output_tokens": ("By length of the answer", "output tokens"),
    "input_tokens": ("By length of the context", "input tokens"),
    "concurrency": ("By load", "requests in flight"),
}


def show(client: Client, source: Source, zone: ZoneInfo | None = None) -> None:
    """Draw the acceptance of the chosen rollout."""
    overview = rollout_choice.choose(client, source, "acceptance")
    if overview is None:
        return
    rollout = overview.rollout
    st.html(markup.title("Acceptance", rollout))
    if not overview.candidate_generations:
        states.one_arm(overview)
        return
    cohort = address.narrow("Cohort", "cohort", overview.cohorts, of=rollout, every="All cohorts")
    stored = client.newest_verdict(rollout)
    if stored is None:
        states.undecided(overview)
    else:
        st.header("By cohort and position", anchor="cohorts")
        drafts = stored.verdict.drafts_by_load if cohort is None else ()
        acceptance.show(narrowed(stored.verdict.acceptance, cohort), drafts)
    st.header("By request", anchor="profile")
    _show_profile(client, source, overview, cohort)
    st.header("Over time", anchor="time")
    _show_time(client, source, overview, cohort, zone)
    st.header("Advice", anchor="advice")
    advice.show(client, source, overview, cohort)


def _show_profile(
    client: Client, source: Source, overview: RolloutOverview, cohort: str | None
) -> None:
    at = reading.stamp(source.address, overview)
    table = reading.newest_of(client, at, cohort)
    with st.container(key="charts-profile"):
        columns = st.columns(2) + st.columns(2)
    for column, (name, (title, unit)) in zip(columns, _NUMBERS.items(), strict=False):
        with column:
            st.html(markup.heading(title))
            buckets = acceptance_profile.by_number(table, name)
            if not buckets:
                st.html(markup.note(f"No usable counts with {unit}."))
                continue
            draw(charts.by_bucket(buckets, unit), alt=f"Acceptance {title.lower()}")
            n = sum(bucket.generations for bucket in buckets)
            st.html(markup.note(f"n = {words.counted(n, 'generation')} of the candidate."))
    with columns[-1]:
        st.html(markup.heading("Draft tokens accepted in one verify step"))
        steps = acceptance_profile.per_step(table)
        if steps:
            draw(charts.per_step(steps), alt="Verify steps by tokens accepted")
            n = sum(step.steps for step in steps)
            st.html(markup.note(f"n = {words.counted(n, 'verify step')}."))
        else:
            st.html(markup.note("No engine reported histograms or counts by position."))
    st.html(
        markup.note(
            f"From the newest {words.counted(table.num_rows, 'generation')}. Spans carry no counts "
            "by place in the answer, so the answer's length is used instead."
        )
    )


def _show_time(
    client: Client,
    source: Source,
    overview: RolloutOverview,
    cohort: str | None,
    zone: ZoneInfo | None,
) -> None:
    length_s = (overview.last_end_unix_ns - overview.first_start_unix_ns) // 1_000_000_000
    step = next(name for name, most in _STEPS.items() if most is None or length_s <= most)
    buckets = client.timeseries(overview.rollout, step=step, cohort=cohort, counts_only=True)
    moments = acceptance_profile.over_time(buckets, cohort)
    if not moments:
        st.html(markup.note("The candidate reported no draft tokens."))
        return
    table = reading.newest_of(client, reading.stamp(source.address, overview), cohort)
    seen = acceptance_profile.deployments(table)
    draw(charts.over_time(moments, seen, zone), alt=f"Acceptance rate by {step}")
    drafts = sum(moment.draft_tokens for moment in moments)
    st.html(markup.note(f"One point per {step}; n = {words.counted(drafts, 'draft token')}."))
    st.html(markup.note(_deployed(seen)))


def _deployed(seen: tuple[acceptance_profile.Deployment, ...]) -> str:
    if not seen:
        return "No span carries a fingerprint (draftgate.fingerprint): new deployments do not show."
    if len(seen) == 1:
        return "⚑ The fingerprint of target, draft, engine and flags never changed."
    return (
        f"⚑ {len(seen)} fingerprints of target, draft, engine and flags: a dashed line marks "
        "each change. Before and after it, the system is not the same."
    )
