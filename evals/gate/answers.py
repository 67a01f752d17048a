"""The verdict's further answers: may it ship for each cohort, and how many more prompts."""

import math
from collections.abc import Sequence

import numpy as np

from collector.contract import CohortAnswer, Finding, MayShip, Outcome, Reason, Role
from evals.evidence.columns import Evidence
from evals.gate.cells import Cell
from evals.gate.wording import why

Judged = Sequence[tuple[Cell, Finding]]


def cohort_answers(
    judged: Judged, findings: Sequence[Finding], evidence: Evidence, aside: Sequence[str]
) -> tuple[CohortAnswer, ...]:
    """Return an answer for each cohort of the pairs, the workload or the policy.

    No if a prove or guard cell of the cohort fails; yes if its prove cells pass and nothing fails
    in the pool of all pairs; otherwise unknown. `findings` includes those without a cell.
    """
    of_cells = {cell.cohort for cell, _ in judged if cell.cohort is not None}
    bands = () if evidence.bands is None else evidence.bands.names
    named = sorted({*of_cells, *evidence.cohorts, *evidence.workload}.difference(bands))
    cohorts = [cohort for cohort in (*named, *bands) if cohort not in aside]
    pooled = [f for f in findings if f.cohort is None and f.role is not Role.REPORT]
    broken = [f.metric for f in pooled if f.outcome is Outcome.FAIL]
    return tuple(_answer(cohort, judged, broken, evidence) for cohort in cohorts)


def prompts_needed(findings: Sequence[Finding], evidence: Evidence, role: Role) -> int | None:
    """Return the largest need of a role's cells, in prompts of the whole workload, if any."""
    needs = [prompts for f in findings if f.role is role if (prompts := _prompts(f, evidence))]
    return max(needs, default=None)


def _answer(cohort: str, judged: Judged, broken: Sequence[str], evidence: Evidence) -> CohortAnswer:
    own = [(c, f) for c, f in judged if c.cohort == cohort and f.role is not Role.REPORT]
    found = [f for _, f in own]
    answer, because = _answer_and_reason(own, broken)
    needed = prompts_needed(found, evidence, Role.PROVE) if answer is MayShip.UNKNOWN else None
    return CohortAnswer(
        cohort=cohort,
        pairs=int(evidence.scope(cohort).sum()),
        answer=answer,
        because=because,
        prompts_needed=needed,
    )


def _answer_and_reason(own: Judged, broken: Sequence[str]) -> tuple[MayShip, str]:
    proofs = [(c, f) for c, f in own if f.role is Role.PROVE]
    failed = [c for c, f in own if f.outcome is Outcome.FAIL]
    missing = [(c, f) for c, f in proofs if f.outcome is not Outcome.PASS]
    if failed:
        return MayShip.NO, f"beyond the margin: {_measures(failed)}"
    if missing:
        return MayShip.UNKNOWN, "; ".join(_missing(c, f) for c, f in _without_repeats(missing))
    if broken:
        return MayShip.UNKNOWN, f"over all cohorts {_listed(broken)} fails"
    if not own:
        return MayShip.UNKNOWN, "not judged by itself: the policy has no cell of it"
    if not proofs:
        return MayShip.UNKNOWN, "not proved by itself: of its cells none must pass, and none fails"
    open_guards = sum(f.outcome is not Outcome.PASS for _, f in own)
    guards = f"; {open_guards} of its guards undecided" if open_guards else ""
    return MayShip.YES, f"{len(proofs)} of {len(proofs)} required cells are within margin{guards}"


def _without_repeats(missing: Judged) -> Judged:
    """Keep one of the cells that differ only in their margin."""
    return list({cell.chain: (cell, finding) for cell, finding in reversed(missing)}.values())[::-1]


def _missing(cell: Cell, finding: Finding) -> str:
    return f"{_measure(cell)} ({why(finding)})"


def _measures(cells: Sequence[Cell]) -> str:
    return _listed([_measure(cell) for cell in cells])


def _measure(cell: Cell) -> str:
    return cell.metric.stat_words(cell.rule.stat)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(name.replace("_", " ") for name in names))


def _prompts(finding: Finding, evidence: Evidence) -> int | None:
    """Return a cell's need in prompts of the whole workload, `None` if prompts do not settle it.

    The cell's pairs ÷ its share of the pairs, ÷ the pairs a prompt has in this run.
    """
    if finding.outcome is not Outcome.INCONCLUSIVE or not finding.n_needed:
        return None
    share = _share(finding, evidence)
    if share is None:
        return None
    repeats = len(evidence) / len(np.unique(evidence.prompts)) if len(evidence) else 1.0
    return math.ceil(round(finding.n_needed / share / repeats, 6))


def _share(finding: Finding, evidence: Evidence) -> float | None:
    """Return the share of the pairs that count for a cell; `None` if it is unknown.

    A cell that lacks scores or answers and not pairs needs no prompts.
    """
    if finding.reason is Reason.MISSING and evidence.scope(finding.cohort).any():
        return None
    if finding.n:
        return finding.n / len(evidence)
    if finding.cohort is None:
        return 1.0
    planned = evidence.workload.get(finding.cohort, 0) / max(sum(evidence.workload.values()), 1)
    return planned or float(evidence.scope(finding.cohort).mean() if len(evidence) else 0) or None
