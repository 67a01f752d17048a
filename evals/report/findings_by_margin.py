"""Order findings for readers: the worst first, and one estimate at several margins together."""

import math
from collections.abc import Sequence

from collector.contract import Finding, Outcome, Role

_ORDER = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}


def rank(finding: Finding) -> tuple[bool, int, bool, float]:
    """Return the sort key of a finding: deciding ones first, by outcome, by distance to the margin.

    The distance is on the log scale for ratios; a fail without an estimate comes first. Findings
    that do not fail stay in the verdict's order, guards after those that must pass.
    """
    if finding.outcome is not Outcome.FAIL:
        light = finding.role is Role.GUARD
        return (finding.role is Role.REPORT, _ORDER[finding.outcome], light, 0.0)
    beyond = _beyond(finding)
    return (finding.role is Role.REPORT, 0, False, -math.inf if beyond is None else -beyond)


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings by `rank`; equal ones stay in the verdict's order."""
    return sorted(findings, key=rank)


def worst_by_margin(findings: Sequence[Finding]) -> list[tuple[Finding, ...]]:
    """Return the groups of `by_margin`, the group with the worst finding first."""
    return sorted(by_margin(findings), key=lambda group: min(map(rank, group)))


def _beyond(finding: Finding) -> float | None:
    """Return how far the estimate lies beyond the margin; negative if it is within."""
    side = 1 if finding.bound == "max" else -1
    if finding.estimate is None:
        return None
    if finding.unit != "ratio":
        return side * (finding.estimate - finding.margin)
    if finding.estimate <= 0 or finding.margin <= 0:
        return None
    return side * math.log(finding.estimate / finding.margin)


def by_margin(findings: Sequence[Finding]) -> list[tuple[Finding, ...]]:
    """Group findings that differ only in margin and role, in the order of each group's first."""
    groups: dict[object, list[Finding]] = {}
    for f in findings:
        same = (f.metric, f.stat, f.cohort, f.bound, f.n, f.estimate, f.lower, f.upper, f.method)
        groups.setdefault(same, []).append(f)
    return [tuple(group) for group in groups.values()]


def merged_message(findings: Sequence[Finding]) -> str:
    """Return one sentence for findings that differ only in margin and role."""
    first, *others = findings
    if not others:
        return first.message
    head, _, _ = first.message.rpartition(_at(first))
    parts = (f"{f.role.value} {_at(f)}{f.message.rpartition(_at(f))[2]}" for f in findings)
    return head + "; ".join(parts)


def _at(finding: Finding) -> str:
    """Return the text before the margin in the finding's message."""
    return f"margin {'≤' if finding.bound == 'max' else '≥'}"
