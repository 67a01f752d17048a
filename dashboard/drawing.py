"""Put a chart on the page."""

from typing import Any, cast

import streamlit as st
from altair import Chart, TopLevelMixin


def draw(chart: TopLevelMixin, *, alt: str) -> None:
    """Show a chart; `alt` tells what it shows to those who cannot see it."""
    st.altair_chart(cast("Chart", _Unchecked(chart)), alt=alt)


class _Unchecked:
    """A chart that is not held against Vega-Lite's schema, as the tests have held every one.

    On the page that takes longer than all else about a chart.
    """

    def __init__(self, chart: TopLevelMixin) -> None:
        self._chart = chart

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        return self._chart.to_dict(validate=False)
