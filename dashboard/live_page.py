"""Live: the switch, the watch's evidence, latencies and engines, redrawn as data arrives."""

import time
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import RolloutOverview
from dashboard import address, markup, refreshing, rollout_choice, words
from dashboard.sections import engines, latencies_now, switch, watch
from dashboard.source import Source

REFRESHES = {"10s": "10 s", "30s": "30 s", "off": "Off"}


def show(client: Client, source: Source, zone: ZoneInfo | None) -> None:
    """Draw the rollout's current state, redrawn periodically."""
    overview = rollout_choice.choose(client, source, "live")
    if overview is None:
        return
    rollout = overview.rollout
    st.html(markup.title("Live", rollout))
    chosen = address.choose(
        "Redraw every", "refresh", list(REFRESHES), of=rollout, titles=list(REFRESHES.values())
    )
    interval = None if chosen == "off" else chosen
    switch.show(client, source, rollout, zone)

    def redrawn() -> None:
        _redrawn(client, overview, zone)

    refreshing.every(interval, source, redrawn)


def _redrawn(client: Client, overview: RolloutOverview, zone: ZoneInfo | None) -> None:
    now_unix_ns = time.time_ns()
    st.html(markup.note(f"As of {words.moment(now_unix_ns, zone)}."))
    st.header("Evidence", anchor="evidence")
    watch.show(client, overview.rollout, zone)
    st.header("Latencies", anchor="latencies")
    latencies_now.show(client, overview.rollout, now_unix_ns, zone)
    st.header("Engines", anchor="engines")
    engines.show(client, now_unix_ns, zone)
