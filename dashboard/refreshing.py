"""Parts of a page that are drawn anew by themselves: scroll and choices around them stay."""

from collections.abc import Callable

import streamlit as st

from collector.client import ClientError
from dashboard import states
from dashboard.source import Source


def every(interval: str | None, source: Source, draw: Callable[[], None]) -> None:
    """Draw a part now and after every interval, such as `10s`; not again where it is None."""

    def guarded() -> None:
        # A part that is redrawn alone has no page around it that would catch this.
        try:
            draw()
        except ClientError as error:
            states.problem(source, error)

    st.fragment(run_every=interval)(guarded)()
