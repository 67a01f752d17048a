"""Calibration of the predicted probability that an answer is unsupported: numbers and a plot."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_SIZE, _EDGE = 320, 48


class Bin(NamedTuple):
    """Answers with similar predicted probabilities."""

    predicted: float
    observed: float
    n: int


def bins(
    probability: NDArray[np.float64],
    label: NDArray[np.int64],
    weight: NDArray[np.float64],
    count: int = 10,
) -> list[Bin]:
    """Return bins with equal numbers of answers, and their weighted shares."""
    parts = np.array_split(np.argsort(probability, kind="stable"), count)
    return [
        Bin(
            float(np.average(probability[part], weights=weight[part])),
            float(np.average(label[part], weights=weight[part])),
            len(part),
        )
        for part in parts
        if len(part)
    ]


def error(found: Sequence[Bin], weights: Sequence[float] | None = None) -> float:
    """Return the mean absolute difference of predicted and observed shares over the bins."""
    gaps = [abs(b.predicted - b.observed) for b in found]
    return float(np.average(gaps, weights=weights or [b.n for b in found]))


def svg(found: Sequence[Bin], title: str) -> str:
    """Return a reliability diagram; the diagonal is perfect calibration."""

    def x(share: float) -> float:
        return round(_EDGE + share * _SIZE, 1)

    def y(share: float) -> float:
        return round(_EDGE + (1 - share) * _SIZE, 1)

    dots = "".join(f'<circle cx="{x(b.predicted)}" cy="{y(b.observed)}" r="4"/>' for b in found)
    line = " ".join(f"{x(b.predicted)},{y(b.observed)}" for b in found)
    ticks = "".join(
        f'<text x="{x(t)}" y="{_EDGE + _SIZE + 18}" text-anchor="middle">{t:g}</text>'
        f'<text x="{_EDGE - 8}" y="{y(t) + 4}" text-anchor="end">{t:g}</text>'
        for t in (0, 0.25, 0.5, 0.75, 1)
    )
    total = _SIZE + 2 * _EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {total}" role="img" '
        f'font-family="sans-serif" font-size="12"><title>{title}</title>'
        f'<rect width="{total}" height="{total}" fill="white"/>'
        f'<text x="{_EDGE}" y="28" font-size="13">{title}</text>'
        f'<rect x="{_EDGE}" y="{_EDGE}" width="{_SIZE}" height="{_SIZE}" fill="none" '
        f'stroke="#888"/><line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" '
        f'stroke="#888" stroke-dasharray="4"/>{ticks}'
        f'<text x="{x(0.5)}" y="{total - 10}" text-anchor="middle">predicted probability</text>'
        f'<g fill="#1f5fa8"><polyline points="{line}" fill="none" stroke="#1f5fa8"/>{dots}</g>'
        "</svg>\n"
    )
