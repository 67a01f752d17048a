"""The charts, with one look: each takes records and returns an Altair chart that draws them.

Nothing is computed but where ink goes; a number that is shown is formatted by `dashboard.words`.
"""

from dashboard.charts.acceptance import acceptance_by_cohort, acceptance_by_position
from dashboard.charts.forest import forest
from dashboard.charts.latency import SHAPES, latency_range
from dashboard.charts.quality import wins_and_losses

__all__ = [
    "SHAPES",
    "acceptance_by_cohort",
    "acceptance_by_position",
    "forest",
    "latency_range",
    "wins_and_losses",
]
