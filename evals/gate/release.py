"""Judge all cells, and derive the release verdict."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import NamedTuple

import numpy as np
import scipy

from collector.contract import Finding, LaunchCounts, Outcome, Reason, Role, Verdict
from evals.acceptance import acceptance
from evals.divergence import divergence
from evals.evidence import Evidence
from evals.gate.answers import cohort_answers, prompts_needed
from evals.gate.assumption import assumption
from evals.gate.cells import Cell, plan
from evals.gate.control import control_obstacles
from evals.gate.lossless_cells import lossless_findings
from evals.gate.measured import Measurement, Obstacle, within
from evals.gate.measurement import launches_to_decide, measure, pairs_to_decide
from evals.gate.not_judged import not_judged, reported_failing, undecided_cells
from evals.gate.sampled_cells import sampled_findings
from evals.gate.stray import stray_cohorts
from evals.gate.summary import left_open, reasons, summary
from evals.gate.suspicions import suspicions
from evals.gate.treatment import idle
from evals.gate.validity import violations
from evals.gate.warmup import after_warmup
from evals.gate.wording import finding_message, reason_words, too_few_launches
from evals.gate.wording import undecided as undecided_words
from evals.latency import latency
from evals.policy import Policy
from evals.quality import quality
from evals.significant import significant
from evals.stats import Interval
from evals.stats.holm import adjusted
from evals.structured_answers import structured_answers

GATE_VERSION = "9"


def decide(
    evidence: Evidence, policy: Policy, *, rollout: str, control: Evidence | None = None
) -> Verdict:
    """Judge a rollout: the same evidence and policy always give the same verdict.

    `control` is an A/A rollout's evidence. Raises `PolicyError` if the policy proves nothing, and
    `EvidenceError` if no pairs are left after the warm-up.
    """
    whole, evidence = evidence, after_warmup(evidence, policy.sampling.warmup_drop)
    cells, judged = plan(evidence, policy), judge_cells(evidence, policy, control)
    findings = (
        *judged,
        *lossless_findings(evidence, control, policy),
        *sampled_findings(evidence, policy),
    )
    pairs_of_cells = list(zip(cells, judged, strict=True))
    aside = stray_cohorts(evidence, policy)
    open_cells = not_judged(cells, judged, whole)
    undecided = undecided_cells(pairs_of_cells)
    reported = reported_failing(judged)
    suspected = suspicions(evidence)
    outcome = release_outcome(findings)
    arrived = evidence.baseline.present | evidence.candidate.present
    complete = evidence.complete if policy.paired else arrived
    failed = evidence.baseline.failed | evidence.candidate.failed
    return Verdict(
        rollout=rollout,
        outcome=outcome,
        change=evidence.change,
        summary=summary(
            rollout,
            outcome,
            findings,
            f"{len(evidence)} {'pairs' if policy.paired else 'requests'}",
        )
        + left_open(
            outcome,
            not_judged=open_cells,
            undecided=undecided,
            reported=reported,
            aside=aside,
            suspected=suspected,
        ),
        reasons=reasons(outcome, findings),
        not_judged=open_cells,
        undecided=undecided,
        reported_failing=reported,
        suspicions=suspected,
        cohorts=cohort_answers(pairs_of_cells, findings, evidence, [one.cohort for one in aside]),
        set_aside=aside,
        prompts_needed=prompts_needed(findings, evidence, Role.PROVE)
        if outcome is Outcome.INCONCLUSIVE
        else None,
        prompts_needed_for_guards=prompts_needed(findings, evidence, Role.GUARD),
        launches=_launches(cells, evidence),
        launches_needed=max(
            (f.launches_needed for f in findings if f.role is Role.PROVE and f.launches_needed),
            default=None,
        ),
        assumption=assumption(cells, policy),
        pairs=len(evidence),
        incomplete_pairs=int((~complete).sum()),
        failed_pairs=int(failed.sum()),
        duplicates=evidence.baseline.duplicates + evidence.candidate.duplicates,
        findings=findings,
        latency=latency(evidence, paired=policy.paired),
        acceptance=acceptance(evidence),
        quality=quality(evidence),
        divergence=divergence(evidence),
        structured_answers=structured_answers(evidence),
        policy_name=policy.name,
        policy_hash=policy.policy_hash,
        data_hash=_both_hashes(evidence, control),
        versions=versions(),
    )


def judge_cells(
    evidence: Evidence, policy: Policy, control: Evidence | None = None
) -> tuple[Finding, ...]:
    """Return every cell's finding; failures are Holm-corrected over all prove and guard cells."""
    cells = plan(evidence, policy)
    slices = {c: evidence.take(evidence.scope(c)) for c in {cell.cohort for cell in cells}}
    measured = _valid(cells, [measure(c, slices[c.cohort], policy) for c in cells],
                      (evidence, control), policy)  # fmt: skip
    deciding = [i for i, cell in enumerate(cells) if cell.rule.role is not Role.REPORT]
    chains = [cells[i].chain for i in deciding]
    corrected = adjusted([_family_p(measured[i]) for i in deciding], chains)
    p_of = dict(zip(deciding, corrected, strict=True))
    family = max(len(set(chains)), 1)
    return tuple(
        _finding(cell, m, p_of.get(i, _family_p(m)), policy, family)
        for i, (cell, m) in enumerate(zip(cells, measured, strict=True))
    )


def _valid(
    cells: Sequence[Cell],
    measured: list[Measurement],
    evidence: tuple[Evidence, Evidence | None],
    policy: Policy,
) -> list[Measurement]:
    """Add the obstacles of validity to the cells that were measured."""
    broken = violations(evidence[0], policy)
    untreated = idle(evidence[0], policy)
    controls = control_obstacles(cells, evidence[1], policy)
    result = []
    for cell, m, unquiet in zip(cells, measured, controls, strict=True):
        found = [v.obstacle for v in broken if v.touches(cell)]
        found += [] if untreated is None else [untreated]
        found += [] if unquiet is None else [unquiet]
        nothing = m.n == 0 and m.obstacle is not None
        own = [] if m.obstacle is None else [m.obstacle]
        result.append(m if nothing or not found else replace(m, obstacle=_first_of(found, own)))
    return result


def _first_of(found: Sequence[Obstacle], own: Sequence[Obstacle]) -> Obstacle:
    """Return the first obstacle, combined with what any of them bars."""
    every = (*found, *own)
    return replace(
        found[0],
        bars_fail=any(o.bars_fail for o in every),
        bars_harm=any(o.bars_harm for o in every),
    )


def release_outcome(findings: tuple[Finding, ...]) -> Outcome:
    """Fail if a prove or guard cell fails, pass if every prove cell passes, else inconclusive."""
    deciding = [f for f in findings if f.role is not Role.REPORT]
    proofs = [f for f in findings if f.role is Role.PROVE]
    if any(f.outcome is Outcome.FAIL for f in deciding):
        return Outcome.FAIL
    if proofs and all(f.outcome is Outcome.PASS for f in proofs):
        return Outcome.PASS
    return Outcome.INCONCLUSIVE


class _Judgement(NamedTuple):
    outcome: Outcome
    obstacle: Obstacle | None


def _family_p(measured: Measurement) -> float | None:
    """Return the cell's p value in Holm's family; despite an obstacle only that of certain harm."""
    obstacle = measured.obstacle
    if obstacle is not None and obstacle.bars_harm:
        return None
    if obstacle is not None and obstacle.bars_fail:
        return measured.p_harm
    return None if measured.interval is None else measured.interval.p_fail


def _judge(
    cell: Cell, measured: Measurement, p_corrected: float | None, policy: Policy, family: int
) -> _Judgement:
    if measured.obstacle is not None:
        if p_corrected is not None and p_corrected <= policy.alpha_fail_family:
            return _Judgement(Outcome.FAIL, None)
        return _Judgement(Outcome.INCONCLUSIVE, measured.obstacle)
    interval = measured.interval
    if interval is None:
        return _Judgement(Outcome.INCONCLUSIVE, Obstacle(Reason.MISSING, "no limits exist"))
    if within(cell, interval):
        return _Judgement(Outcome.PASS, None)
    if p_corrected is not None and p_corrected <= policy.alpha_fail_family:
        return _Judgement(Outcome.FAIL, None)
    levels = (policy.alpha_pass, policy.alpha_fail_family / family)
    return _Judgement(Outcome.INCONCLUSIVE, _undecided(cell, measured, interval, levels))


def _undecided(
    cell: Cell, measured: Measurement, interval: Interval, levels: tuple[float, float]
) -> Obstacle:
    """Return the obstacle that launches or pairs are lacking, with their number."""
    if interval.launches is not None and interval.launches.binds:
        seen = len(interval.launches.ratios)
        return too_few_launches(seen, launches_to_decide(cell, interval.launches, *levels))
    return undecided_words(cell, measured, pairs_to_decide(cell, measured, *levels))


def _finding(
    cell: Cell, measured: Measurement, p_corrected: float | None, policy: Policy, family: int
) -> Finding:
    outcome, obstacle = _judge(cell, measured, p_corrected, policy, family)
    interval, rule = measured.interval, cell.rule
    because = None if obstacle is None else reason_words(obstacle.reason, obstacle.words)
    return Finding(
        metric=rule.metric,
        stat=rule.stat,
        cohort=cell.cohort,
        role=rule.role,
        outcome=outcome,
        reason=None if obstacle is None else obstacle.reason,
        bound=rule.bound,
        margin=rule.margin,
        unit="ratio" if rule.stat.endswith("_ratio") else "difference",
        confidence=1 - policy.alpha_pass,
        n=measured.n,
        n_needed=None if obstacle is None else obstacle.n_needed,
        launches=_by_launch(interval),
        launches_needed=None if obstacle is None else obstacle.launches_needed,
        estimate=None if interval is None else significant(interval.estimate),
        lower=None if interval is None else significant(interval.lower),
        upper=None if interval is None else significant(interval.upper),
        p_fail=None if interval is None else significant(interval.p_fail, 6),
        method=cell.method if interval is None else interval.method,
        message=finding_message(cell, measured, outcome, because),
    )


def _by_launch(interval: Interval | None) -> tuple[float | None, ...]:
    if interval is None or interval.launches is None:
        return ()
    return tuple(significant(x) if math.isfinite(x) else None for x in interval.launches.ratios)


def _launches(cells: Sequence[Cell], evidence: Evidence) -> LaunchCounts | None:
    """Return the launches behind the verdict's times; `None` if no times are judged."""
    found = evidence.launches
    if found is None or not any(cell.metric.timed for cell in cells):
        return None
    return LaunchCounts(
        baseline=found.baseline,
        candidate=found.candidate,
        independent=found.independent,
        holds_over_launches=found.enough,
    )


def _both_hashes(evidence: Evidence, control: Evidence | None) -> str:
    """Return the evidence's hash; with a control, the hash of both."""
    if control is None:
        return evidence.data_hash
    return hashlib.sha256(f"{evidence.data_hash} {control.data_hash}".encode()).hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of the gate and of the libraries that it computes with."""
    found = {"gate": GATE_VERSION, "numpy": np.__version__, "scipy": scipy.__version__}
    try:
        found["draftgate"] = metadata.version("draftgate")
    except metadata.PackageNotFoundError:
        return found  # run from a checkout: there is no installed version to name
    return found
