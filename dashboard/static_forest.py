"""The forest plot as SVG, for the static report, which has no scripts."""

import math
from collections.abc import Callable, Sequence

from collector.contract import Finding, Outcome
from dashboard import words
from dashboard.markup import Html, text

_LABEL, _PLOT, _ROW, _TOP = 330, 560, 26, 10
_CLASS = {Outcome.PASS: "dg-pass", Outcome.FAIL: "dg-fail", Outcome.INCONCLUSIVE: "dg-inconclusive"}


def drawing(findings: Sequence[Finding], unit: str) -> Html:
    """Return findings of one unit, one per row: both limits, the estimate, the margin.

    A missing limit extends to the edge.
    """
    at, edges = _scale(findings, 1.0 if unit == "ratio" else 0.0, logarithmic=unit == "ratio")
    height = _TOP * 2 + _ROW * len(findings)
    middle = at(1.0 if unit == "ratio" else 0.0)
    rows = "".join(_row(finding, place, at, edges) for place, finding in enumerate(findings))
    return Html(
        f'<svg class="dg-forest" viewBox="0 0 {_LABEL + _PLOT} {height}" role="img" '
        f'aria-label="Forest plot; every number is in the table below">'
        f'<line class="dg-none-line" x1="{middle:.1f}" x2="{middle:.1f}" y1="0" y2="{height}"/>'
        f"{rows}</svg>"
    )


def _row(
    finding: Finding, place: int, at: Callable[[float], float], edges: tuple[float, float]
) -> str:
    y = _TOP + _ROW * (place + 0.5)
    css = _CLASS[finding.outcome]
    label = f"{words.OUTCOME_ICONS[finding.outcome]} {words.cell(finding)}"
    margin = at(finding.margin)
    drawn = (
        f'<text x="{_LABEL - 10}" y="{y + 4:.1f}" text-anchor="end">{text(label)}</text>'
        f'<line class="dg-margin" x1="{margin:.1f}" x2="{margin:.1f}" '
        f'y1="{y - 8:.1f}" y2="{y + 8:.1f}"/>'
    )
    if finding.estimate is None:
        return drawn
    left = at(edges[0] if finding.lower is None else finding.lower)
    right = at(edges[1] if finding.upper is None else finding.upper)
    rings = "".join(
        f'<circle class="dg-launch" cx="{at(ratio):.1f}" cy="{y:.1f}" r="3"/>'
        for ratio in finding.launches
        if ratio is not None
    )
    return (
        f'{drawn}{rings}<g class="{css}"><title>{text(finding.message)}</title>'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<circle cx="{at(finding.estimate):.1f}" cy="{y:.1f}" r="5"/></g>'
    )


def _scale(
    findings: Sequence[Finding], reference: float, *, logarithmic: bool
) -> tuple[Callable[[float], float], tuple[float, float]]:
    """Return the function from a number to its x position, and the numbers at both edges."""
    drawn = [reference]
    for finding in findings:
        numbers = (
            finding.estimate, finding.lower, finding.upper, finding.margin, *finding.launches
        )  # fmt: skip
        drawn += [number for number in numbers if number is not None]
    logarithmic = logarithmic and min(drawn) > 0
    bend: Callable[[float], float] = math.log if logarithmic else float
    low, high = bend(min(drawn)), bend(max(drawn))
    room = max((high - low) * 0.06, 0.005)
    low, high = low - room, high + room

    def at(number: float) -> float:
        return _LABEL + _PLOT * (bend(number) - low) / (high - low)

    unbend = math.exp if logarithmic else float
    return at, (unbend(low), unbend(high))
