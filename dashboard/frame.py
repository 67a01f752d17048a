"""The frame of every page: title, navigation, address, Refresh, sign-in, error state."""

from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from collector.client import Client, ClientError
from dashboard import (
    acceptance_page,
    live_page,
    markup,
    pairs_page,
    reading,
    rollout_page,
    rollouts_page,
    sign_in,
    source,
    states,
    traces_page,
    verdicts_page,
)
from dashboard.source import Source

SIDEBAR_WIDTH = 220
"""Pixels; on a small screen the sidebar starts collapsed."""
# A Material icon as the page icon would be fetched from a font server on the internet.
_ICON = Path(__file__).with_name("icon.svg")
_LOGO = Path(__file__).with_name("logo.svg")
_STYLE = Path(__file__).with_name("style.css")

Show = Callable[[Client, Source, ZoneInfo | None], None]


def main() -> None:
    """Draw the page named in the address bar."""
    st.set_page_config(
        page_title="Draftgate",
        page_icon=_ICON,
        layout="wide",
        initial_sidebar_state=SIDEBAR_WIDTH,
    )
    st.html(_STYLE)
    st.logo(_LOGO, size="large", icon_image=_ICON)
    if not sign_in.is_allowed():
        return
    page = st.navigation(_pages())
    _sidebar()
    try:
        page.run()
    except ClientError as error:
        states.problem(source.from_environment(), error)


def _pages() -> list[st.Page]:
    return [
        _page("Rollouts", "rollouts", ":material/list:", rollouts_page.show, default=True),
        _page("Rollout", "rollout", ":material/fact_check:", rollout_page.show),
        _page("Acceptance", "acceptance", ":material/bar_chart:", acceptance_page.show),
        _page("Pairs", "pairs", ":material/compare:", pairs_page.show),
        _page("Traces", "traces", ":material/account_tree:", traces_page.show),
        _page("Live", "live", ":material/monitoring:", live_page.show),
        _page("Verdicts", "verdicts", ":material/gavel:", verdicts_page.show),
    ]


def _page(title: str, path: str, icon: str, show: Show, *, default: bool = False) -> st.Page:
    def draw() -> None:
        where = source.from_environment()
        show(source.client(where), where, _zone())

    return st.Page(draw, title=title, icon=icon, url_path=path, default=default)


def _sidebar() -> None:
    with st.sidebar:
        if st.button("Refresh", icon=":material/refresh:", width="stretch"):
            reading.clear()
        st.html(markup.facts([("Collector", source.from_environment().address)]))
        sign_in.sign_out()
        st.html(
            markup.note(
                "The gate and the collector compute every number; pages only format them. "
                "Light or dark: menu ⋮, top right."
            )
        )


def _zone() -> ZoneInfo | None:
    """Return the viewer's time zone; `None` if the browser sends none or it is unknown."""
    name = st.context.timezone
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
