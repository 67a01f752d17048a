"""The charts, in one style: each function takes records and returns a Vega-Lite specification.

Charts compute nothing but positions; `dashboard.words` formats the numbers shown.
"""

from dashboard.charts.acceptance import acceptance_by_cohort, acceptance_by_position
from dashboard.charts.advice import by_load, k_sweep, predicted_observed
from dashboard.charts.distributions import cumulative, quantiles, score_changes
from dashboard.charts.forest import forest
from dashboard.charts.latency import SHAPES, latency_range
from dashboard.charts.live import (
    engine_samples,
    evidence,
    latency_over_time,
    requests_over_time,
)
from dashboard.charts.profile import by_bucket, over_time, per_step
from dashboard.charts.quality import wins_and_losses
from dashboard.charts.timeline import timelines, waterfall

__all__ = [
    "SHAPES",
    "acceptance_by_cohort",
    "acceptance_by_position",
    "by_bucket",
    "by_load",
    "cumulative",
    "engine_samples",
    "evidence",
    "forest",
    "k_sweep",
    "latency_over_time",
    "latency_range",
    "over_time",
    "per_step",
    "predicted_observed",
    "quantiles",
    "requests_over_time",
    "score_changes",
    "timelines",
    "waterfall",
    "wins_and_losses",
]
