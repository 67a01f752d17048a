"""Put a chart on the page."""

from collections.abc import Sequence

import pyarrow as pa
import streamlit as st

from dashboard.charts.look import Row, Spec


def draw(chart: Spec, *, alt: str) -> None:
    """Show a chart; `alt` describes it for screen readers."""
    datasets = {name: _to_arrow(rows) for name, rows in chart["datasets"].items()}
    st.vega_lite_chart(spec=chart | {"datasets": datasets}, alt=alt)


def _to_arrow(rows: Sequence[Row]) -> bytes:
    """Encode rows as an Arrow stream; Streamlit itself would convert to a data frame first."""
    table = pa.Table.from_pylist(list(rows))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
