"""Choose a page's rollout: the one in the address bar, else the last one viewed."""

from collections.abc import Sequence

import streamlit as st

from collector.client import Client
from collector.contract import RolloutOverview
from dashboard import address, markup, states
from dashboard.source import Source

_LAST = "last rollout"


def choose(client: Client, source: Source, page: str) -> RolloutOverview | None:
    """Return the rollout to show, or show why there is none and return `None`."""
    overviews = {overview.rollout: overview for overview in client.rollouts()}
    name = address.get("rollout") or _last(list(overviews))
    if not overviews:
        states.empty(source)
    elif name is None:
        st.html(markup.title("Which rollout?"))
        st.html(markup.bullets(markup.rollout_link(rollout, page) for rollout in overviews))
    elif name not in overviews:
        states.unknown_rollout(name, list(overviews))
    else:
        chosen = _switch(list(overviews), name)
        st.session_state[_LAST] = chosen
        address.keep("rollout", chosen)
        return overviews[chosen]
    return None


def _last(known: Sequence[str]) -> str | None:
    last = st.session_state.get(_LAST)
    if last in known:
        return str(last)
    return known[0] if len(known) == 1 else None


def _switch(known: Sequence[str], name: str) -> str:
    """Draw the list of rollouts in the sidebar; return the chosen one."""
    with st.sidebar:
        place: int = st.selectbox(
            "Rollout",
            options=range(len(known)),
            index=known.index(name),
            format_func=lambda i: known[i],
            key=f"rollout {name}",
        )
    return known[place]
