"""Metrics that the engines report: cache, queue, GPU utilisation, memory."""

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import EngineSample
from dashboard import charts, markup, words
from dashboard.drawing import draw

QUARTER_NS = 15 * 60 * 1_000_000_000
METRICS: Mapping[str, tuple[str, ...]] = {
    "KV cache in use": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "Requests running": (
        "vllm:num_requests_running",
        "sglang:num_running_reqs",
        "llamacpp:requests_processing",
        "tgi_batch_current_size",
    ),
    "Requests waiting": (
        "vllm:num_requests_waiting",
        "sglang:num_queue_reqs",
        "llamacpp:requests_deferred",
        "tgi_queue_size",
    ),
    "GPU utilisation": ("DCGM_FI_DEV_GPU_UTIL",),
    "GPU memory in use": ("DCGM_FI_DEV_FB_USED",),
}
"""The charts, and the metric names under which engines report their values."""
_UNITS: Mapping[str | None, str] = {"1": "", "MiBy": "MiB", "By": "bytes"}
"""Words for units of OpenTelemetry, which writes 1 for a number without a unit."""


def show(client: Client, now_unix_ns: int, zone: ZoneInfo | None) -> None:
    """Draw the last quarter of an hour of each reported metric."""
    found = {title: _samples(client, names, now_unix_ns) for title, names in METRICS.items()}
    drawn = {title: samples for title, samples in found.items() if samples}
    if not drawn:
        st.html(
            markup.note(
                "No engine reported its cache, queue or GPU in the last 15 minutes. Send its "
                "metrics over OTLP: an OpenTelemetry Collector with a prometheus receiver does."
            )
        )
        return
    with st.container(key="charts-engines"):
        columns = st.columns(len(drawn))
    for column, (title, samples) in zip(columns, drawn.items(), strict=True):
        with column:
            st.html(markup.heading(title))
            draw(charts.engine_samples(samples, zone), alt=f"{title} over time")
            st.html(markup.note(_source(samples)))


def _source(samples: Sequence[EngineSample]) -> str:
    """Return the engine's name of a metric, its unit if it has one, and the number of samples."""
    unit = _UNITS.get(samples[0].unit, samples[0].unit)
    shown = f", in {unit}" if unit else ""
    return f"{samples[0].metric}{shown}; n = {words.count(len(samples))}"


def _samples(client: Client, names: Sequence[str], now_unix_ns: int) -> list[EngineSample]:
    for name in names:
        found = list(client.samples(name, since_unix_ns=now_unix_ns - QUARTER_NS))
        if found:
            return found
    return []
