"""What stands around every page: title, navigation, address, Refresh, and the error state."""

from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from collector.client import ClientError
from dashboard import markup, pair_list, rollout_page, rollouts_page, source, states

SIDEBAR_WIDTH = 220
"""Pixels; on a small screen the sidebar begins folded away."""
# A material icon as page icon would be fetched from a font server on the internet.
_ICON = Path(__file__).with_name("icon.svg")
_STYLE = Path(__file__).with_name("style.css")


def main() -> None:
    """Draw the page that the address asks for."""
    st.set_page_config(
        page_title="Draftgate",
        page_icon=_ICON,
        layout="wide",
        initial_sidebar_state=SIDEBAR_WIDTH,
    )
    st.html(_STYLE)
    page = st.navigation(
        [
            st.Page(
                _rollouts,
                title="Rollouts",
                icon=":material/list:",
                url_path="rollouts",
                default=True,
            ),
            st.Page(_rollout, title="Rollout", icon=":material/fact_check:", url_path="rollout"),
        ]
    )
    _sidebar()
    try:
        page.run()
    except ClientError as error:
        states.unreachable(source.from_environment(), error)


def _rollouts() -> None:
    where = source.from_environment()
    rollouts_page.show(source.client(where), where)


def _rollout() -> None:
    where = source.from_environment()
    rollout_page.show(source.client(where), where, _zone())


def _sidebar() -> None:
    with st.sidebar:
        if st.button("Refresh", icon=":material/refresh:", width="stretch"):
            pair_list.pair_lines.clear()
        st.html(markup.facts([("Collector", source.from_environment().address)]))
        st.html(
            markup.note("Every number is the gate's or the collector's; this page only formats it.")
        )


def _zone() -> ZoneInfo | None:
    """Return the viewer's time zone; `None` where the browser does not say or it is unknown."""
    name = st.context.timezone
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
