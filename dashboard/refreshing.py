"""Parts of a page that redraw alone, so that the page keeps its scroll position and choices."""

from collections.abc import Callable

import streamlit as st

from collector.client import ClientError
from dashboard import states
from dashboard.source import Source


def every(interval: str | None, source: Source, draw: Callable[[], None]) -> None:
    """Draw a part now and at every interval, such as `10s`; only once if it is `None`."""

    def guarded() -> None:
        # A part that redraws alone is not inside the page's error handler.
        try:
            draw()
        except ClientError as error:
            states.problem(source, error)

    st.fragment(run_every=interval)(guarded)()
