"""One finding at several margins: a proof and a guard of one estimate, told together."""

from collections.abc import Sequence

from collector.contract import Finding


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
