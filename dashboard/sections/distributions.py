"""Distributions: cumulative shares, quantile–quantile plots, and score changes."""

import streamlit as st

from collector.client import Client
from collector.contract import LATENCIES, Arm, RolloutOverview
from dashboard import address, charts, markup, reading, words
from dashboard.drawing import draw
from dashboard.sections.traffic import WINDOWS, window_start_s
from dashboard.source import Source
from evals.profiles import distributions

_METRICS = {f"{metric}_s": words.latency(metric) for metric in LATENCIES}
READ_UNASKED = 20_000
"""Up to this many pairs, score changes are shown without a click."""


def show(client: Client, source: Source, overview: RolloutOverview, cohort: str | None) -> None:
    """Draw the distributions of the chosen latency metric and slice."""
    at = reading.stamp(source.address, overview)
    table = reading.newest(client, at)
    with st.container(horizontal=True):
        metric = address.choose(
            "Latency", "metric", list(_METRICS), of=overview.rollout, titles=list(_METRICS.values())
        )
        dims = _choose_dims(distributions.dimensions(table), overview.rollout)
    window = address.get("window") or "all"
    start_s = window_start_s(window if window in WINDOWS else "all", overview)
    wanted = distributions.Slice(
        cohort,
        dims,
        None if start_s is None else start_s * 10**9,
    )
    curves = distributions.curves(distributions.narrowed(table, wanted), metric)
    st.html(markup.note(_sample(table.num_rows, at.generations)))
    if not curves:
        st.html(markup.note("No generation here has this measurement."))
    else:
        _show_curves(curves, _METRICS[metric])
    _show_changes(client, at, overview, cohort)


def _choose_dims(dimensions: dict[str, tuple[str, ...]], rollout: str) -> dict[str, str]:
    """Let the viewer narrow each dimension that has several values."""
    chosen = {}
    for name, values in dimensions.items():
        if len(values) < 2:
            continue
        value = address.narrow(f"Dimension {markup.label(name)}", f"dim.{name}", values, of=rollout)
        if value is not None:
            chosen[name] = value
    return chosen


def _sample(rows: int, generations: int) -> str:
    newest = "" if rows >= generations else f"the newest {words.count(rows)} of "
    return (
        f"From {newest}{words.counted(generations, 'generation')}: answers that succeeded in the "
        f"chosen cohort, dimension and window. Quantiles are {distributions.EXACT}."
    )


def _show_curves(curves: tuple[distributions.Curve, ...], title: str) -> None:
    counted = ", ".join(f"{curve.arm.value} n = {words.count(curve.n)}" for curve in curves)
    with st.container(key="charts-distributions"):
        left, right = st.columns(2)
    with left:
        st.html(markup.heading(f"{title}: share of generations that took at most this long"))
        draw(charts.cumulative(curves), alt=f"{title}: cumulative share by arm")
        st.html(markup.note(counted))
    with right:
        st.html(markup.heading("Quantile against quantile: below the line the candidate is faster"))
        if {curve.arm for curve in curves} == set(Arm):
            draw(charts.quantiles(curves), alt=f"{title}: quantile against quantile")
            st.html(markup.note(counted))
        else:
            st.html(markup.note("Only one arm has values, so there is nothing to compare."))


def _show_changes(
    client: Client, at: reading.Stamp, overview: RolloutOverview, cohort: str | None
) -> None:
    if overview.pairs > READ_UNASKED and not address.ticked(
        f"Score changes: read all {words.counted(overview.pairs, 'pair')}",
        "changes",
        of=overview.rollout,
    ):
        return
    table = reading.pairs(client, at)
    metrics = distributions.metrics_of(table)
    if not metrics:
        st.html(markup.note("No metric has scores: there are no score changes to draw."))
        return
    metric = address.choose(
        "Score", "score", metrics, of=overview.rollout, titles=[words.metric(m) for m in metrics]
    )
    changes = distributions.score_changes(table, metric, cohort)
    if not changes:
        st.html(markup.note(f"No pair here has a score of {words.metric(metric)} on both sides."))
        return
    n = sum(change.pairs for change in changes)
    st.html(markup.heading(f"{words.metric(metric)}: candidate's score − baseline's score"))
    draw(charts.score_changes(changes), alt="Score differences, pairs by size")
    st.html(markup.note(f"n = {words.counted(n, 'pair')} with a score on both sides."))
