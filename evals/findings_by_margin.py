"""Findings for a reader: the worst first, and one estimate at several margins told together."""

import math
from collections.abc import Sequence

from collector.contract import Finding, Outcome, Role

_ORDER = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}


def rank(finding: Finding) -> tuple[bool, int, bool, float]:
    """Return what findings are sorted by: what decides, the outcome, how far beyond the margin.

    On the log scale for ratios; a fail without an estimate is furthest beyond. What does not fail
    stands in the verdict's own order, guards behind what must pass.
    """
    if finding.outcome is not Outcome.FAIL:
        light = finding.role is Role.GUARD
        return (finding.role is Role.REPORT, _ORDER[finding.outcome], light, 0.0)
    beyond = _beyond(finding)
    return (finding.role is Role.REPORT, 0, False, -math.inf if beyond is None else -beyond)


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings by `rank`; among equals the verdict's own order stands."""
    return sorted(findings, key=rank)


def worst_by_margin(findings: Sequence[Finding]) -> list[tuple[Finding, ...]]:
    """Return findings grouped as by `by_margin`, the group with the worst first."""
    return sorted(by_margin(findings), key=lambda group: min(map(rank, group)))


def _beyond(finding: Finding) -> float | None:
    """Return how far the estimate lies beyond the margin; below 0 within it."""
    side = 1 if finding.bound == "max" else -1
    if finding.estimate is None:
        return None
    if finding.unit != "ratio":
        return side * (finding.estimate - finding.margin)
    if finding.estimate <= 0 or finding.margin <= 0:
        return None
    return side * math.log(finding.estimate / finding.margin)


def by_margin(findings: Sequence[Finding]) -> list[tuple[Finding, ...]]:
    """Return findings that differ in margin and role alone together, in order of the first."""
    groups: dict[object, list[Finding]] = {}
    for f in findings:
        same = (f.metric, f.stat, f.cohort, f.bound, f.n, f.estimate, f.lower, f.upper, f.method)
        groups.setdefault(same, []).append(f)
    return [tuple(group) for group in groups.values()]


def merged_message(findings: Sequence[Finding]) -> str:
    """Return one sentence for findings that differ in margin and role alone."""
    first, *others = findings
    if not others:
        return first.message
    head, _, _ = first.message.rpartition(_at(first))
    parts = (f"{f.role.value} {_at(f)}{f.message.rpartition(_at(f))[2]}" for f in findings)
    return head + "; ".join(parts)


def _at(finding: Finding) -> str:
    """Return what stands in the message before its margin."""
    return f"margin {'≤' if finding.bound == 'max' else '≥'}"
