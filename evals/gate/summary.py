"""The verdict in a few sentences: the decision, its reasons, and the open questions."""

from collections.abc import Sequence

from collector.contract import Finding, Outcome, Role, SetAside
from collector.nouns import counted
from evals.report.findings_by_margin import by_margin, merged_message, rank

_SHOWN = 3


def reasons(outcome: Outcome, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the deciding findings as reasons, the worst first."""
    groups = [group for group in by_margin(findings) if any(_decides(outcome, f) for f in group)]

    def worst(group: Sequence[Finding]) -> tuple[bool, int, bool, float]:
        return min(rank(f) for f in group if _decides(outcome, f))

    return tuple(merged_message(group) for group in sorted(groups, key=worst))


def _decides(outcome: Outcome, f: Finding) -> bool:
    if outcome is Outcome.PASS:
        return f.role is Role.PROVE
    must = f.role is Role.PROVE and f.outcome is not Outcome.PASS
    return f.role is not Role.REPORT and (f.outcome is Outcome.FAIL or must)


def summary(rollout: str, outcome: Outcome, findings: Sequence[Finding], seen: str) -> str:
    """Return the verdict in one sentence."""
    proofs = [f for f in findings if f.role is Role.PROVE]
    failed = sum(f.outcome is Outcome.FAIL for f in findings if f.role is not Role.REPORT)
    passed = sum(f.outcome is Outcome.PASS for f in proofs)
    if outcome is Outcome.FAIL:
        return f"{rollout} fails on {seen}: {failed} {_cells(failed)} beyond the margin."
    if outcome is Outcome.PASS:
        return f"{rollout} passes on {seen}: all {passed} required cells are within margin."
    return (
        f"{rollout} is inconclusive on {seen}: {passed} of {len(proofs)} required cells are proved."
    )


def left_open(
    outcome: Outcome,
    *,
    not_judged: Sequence[str],
    undecided: Sequence[str],
    reported: Sequence[str],
    aside: Sequence[SetAside],
    suspected: Sequence[str] = (),
) -> str:
    """Return the sentences on open questions: the first of each kind, and how many more.

    Those on guards and reported cells are added only to a pass.
    """
    passed = outcome is Outcome.PASS
    cohorts = [f"{one.cohort} ({counted(one.pairs, 'pair')})" for one in aside]
    return (
        _listed("Not judged", _by_reason(not_judged))
        + _listed("Undecided", _by_reason(undecided) if passed else ())
        + _listed("Reported beyond the margin", reported if passed else ())
        + _listed("Suspected", suspected)
        + _listed("Set aside, and judged in the pool alone", cohorts)
    )


def _by_reason(cells: Sequence[str]) -> list[str]:
    """Group cells by their reason: `a, b (why)`."""
    subjects = dict[str, list[str]]()
    for cell in cells:
        subject, _, reason = cell.partition(" (")
        subjects.setdefault(reason, []).append(subject)
    found = list[str]()
    for reason, names in subjects.items():
        shown = f"{', '.join(names[:_SHOWN])}" + (
            f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        )
        found.append(f"{shown} ({reason}" if reason else shown)
    return found


def _listed(what: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    more = len(items) - _SHOWN
    tail = f"; and {more} more" if more > 0 else ""
    return f" {what}: {'; '.join(items[:_SHOWN])}{tail}."


def _cells(count: int) -> str:
    return "cell is" if count == 1 else "cells are"
