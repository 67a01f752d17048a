"""List what a verdict leaves open: cells without evidence, and pairs in no cohort's cell."""

from collections.abc import Iterator, Sequence

from collector.contract import Finding, Outcome, Reason, Role
from evals.evidence.columns import Evidence, Side
from evals.gate.cells import Cell
from evals.gate.likeness import known_values
from evals.gate.treatment import drafted
from evals.gate.wording import subject, why


def not_judged(
    cells: Sequence[Cell], findings: Sequence[Finding], evidence: Evidence
) -> tuple[str, ...]:
    """Return the deciding cells that could not be judged, with reasons, and what no cell covers.

    A cell with limits on both sides of the margin is not listed: it was judged, but is too wide.
    """
    return (
        *_cells(cells, findings),
        *_nameless(cells, evidence),
        *_unrun(evidence),
        *_one_configuration(evidence),
        *_unsaid(evidence),
    )


def _cells(cells: Sequence[Cell], findings: Sequence[Finding]) -> Iterator[str]:
    for cell, finding in zip(cells, findings, strict=True):
        if finding.role is Role.REPORT or finding.outcome is not Outcome.INCONCLUSIVE:
            continue
        if not _is_only_wide(finding):
            yield _why(cell, finding)


def undecided_cells(judged: Sequence[tuple[Cell, Finding]]) -> tuple[str, ...]:
    """Return guards with limits that are too wide, and reported cells that are undecided."""
    return tuple(
        _why(cell, f)
        for cell, f in judged
        if f.outcome is Outcome.INCONCLUSIVE
        and (f.role is Role.REPORT or (f.role is Role.GUARD and _is_only_wide(f)))
    )


def reported_failing(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the reported cells that fail their margin."""
    return tuple(
        f.message.removesuffix(f": {Outcome.FAIL.value}")
        for f in findings
        if f.role is Role.REPORT and f.outcome is Outcome.FAIL
    )


def _is_only_wide(finding: Finding) -> bool:
    """Return whether the cell was judged, and is undecided only because its limits are wide."""
    wide = finding.reason in {Reason.TOO_FEW, Reason.TOO_CLOSE}
    wide |= finding.reason is Reason.LAUNCHES and finding.launches != ()
    return wide and finding.estimate is not None


def _why(cell: Cell, finding: Finding) -> str:
    name = subject(cell).replace(", ", " ")  # commas stand between the names of a list
    return f"{name} ({why(finding)})"


def _unsaid(evidence: Evidence) -> Iterator[str]:
    """Yield a line if no answer of the candidate, or of a cohort, shows that it drafted."""
    if not evidence.wants_drafts:
        return
    candidate = evidence.candidate
    answered = candidate.answered & ~candidate.fallback
    if answered.any() and not drafted(candidate).any():
        yield "whether the candidate speculated at all, which no count shows"
        return
    counted = answered & (candidate.draft_tokens >= 0)
    for cohort in evidence.all_cohorts:
        rows = counted & evidence.scope(cohort)
        if rows.any() and not candidate.draft_tokens[rows].any():
            yield f"whether speculation serves `{cohort}`, in which none was drafted"


def _unrun(evidence: Evidence) -> Iterator[str]:
    """Yield the cohorts of which only a part of the workload arrived, without declared looks."""
    if evidence.looks is not None:
        return
    for cohort, planned in sorted(evidence.workload.items()):
        arrived = int(evidence.scope(cohort).sum())
        if 0 < arrived < planned:
            yield f"`{cohort}` has {arrived:,} pairs of {planned:,} that the workload has"


def _one_configuration(evidence: Evidence) -> Iterator[str]:
    """Yield a line if both arms have the same fingerprint: weights, draft, engine and flags."""
    baseline, candidate = _fingerprints(evidence.baseline), _fingerprints(evidence.candidate)
    if baseline and baseline == candidate:
        shown = ", ".join(sorted(name[:12] for name in baseline))
        yield f"whether the arms differ, which were served in one configuration ({shown})"


def _fingerprints(side: Side) -> set[str]:
    return {one for one in known_values(side, "fingerprint") if one}


def _nameless(cells: Sequence[Cell], evidence: Evidence) -> Iterator[str]:
    count = int((evidence.cohort_of < 0).sum())
    by_cohort = any(cell.rule.scope == "cohort" and cell.rule.cohorts is None for cell in cells)
    if by_cohort and 0 < count < len(evidence):
        yield f"{count:,} of {len(evidence):,} name no cohort, and are judged in the pool alone"
