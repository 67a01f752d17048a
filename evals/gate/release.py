"""Judge all cells, and derive the release verdict."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata

import numpy as np
import scipy

from collector.contract import Finding, LaunchCounts, Outcome, Role, Verdict
from evals.evidence.acceptance import acceptance
from evals.evidence.columns import Evidence
from evals.evidence.divergence import divergence
from evals.evidence.drafting import adaptations, at_loads
from evals.evidence.latency import latency
from evals.evidence.quality import quality
from evals.evidence.structured_answers import structured_answers
from evals.gate.answers import cohort_answers, prompts_needed
from evals.gate.assumption import assumption
from evals.gate.at_looks import (
    at_newest_look,
    judge_at_looks,
    require_judgeable,
    scope_looks,
)
from evals.gate.capacity import capacity
from evals.gate.cells import Cell, plan
from evals.gate.cost_comparison import cost_comparisons
from evals.gate.derived import with_derived
from evals.gate.judging import judge_once
from evals.gate.lossless_cells import lossless_findings
from evals.gate.not_judged import not_judged, reported_failing, undecided_cells
from evals.gate.sampled_cells import sampled_findings
from evals.gate.sentinel_cells import sentinel_answers, sentinel_findings, state_suspicions
from evals.gate.stray import stray_cohorts
from evals.gate.summary import left_open, reasons, summary
from evals.gate.suspicions import suspicions
from evals.gate.treatment import candidates_drafts
from evals.gate.warmup import prepared
from evals.policy import Policy

GATE_VERSION = "10"


def decide(
    evidence: Evidence, policy: Policy, *, rollout: str, control: Evidence | None = None
) -> Verdict:
    """Judge a rollout: the same evidence and policy always give the same verdict.

    `control` is an A/A rollout's evidence. Raises `PolicyError` if the policy proves nothing, or
    cannot judge at declared looks, and `EvidenceError` if no pairs are left after the warm-up.
    """
    if evidence.looks is not None:
        require_judgeable(policy)
    whole, evidence = with_derived(evidence, policy), prepared(evidence, policy)
    control = None if control is None else with_derived(control, policy)
    cells, judged = plan(evidence, policy), judge_cells(evidence, policy, control)
    findings = (*judged, *judge_lossless(evidence, policy, control))
    pairs_of_cells = list(zip(cells, judged, strict=True))
    aside = stray_cohorts(evidence, policy)
    open_cells = not_judged(cells, judged, whole)
    undecided = undecided_cells(pairs_of_cells)
    reported = reported_failing(judged)
    suspected = (*suspicions(evidence), *state_suspicions(evidence.sentinels, policy))
    outcome = release_outcome(findings)
    arrived = evidence.baseline.present | evidence.candidate.present
    complete = evidence.complete if policy.paired else arrived
    drafts = candidates_drafts(evidence.candidate)
    failed = evidence.baseline.failed | evidence.candidate.failed
    return Verdict(
        rollout=rollout,
        outcome=outcome,
        change=evidence.change,
        family=policy.family,
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
        looks=scope_looks(cells, judged, evidence),
        assumption=assumption(cells, policy, evidence.looks),
        pairs=len(evidence),
        incomplete_pairs=int((~complete).sum()),
        failed_pairs=int(failed.sum()),
        duplicates=evidence.baseline.duplicates + evidence.candidate.duplicates,
        findings=findings,
        latency=latency(evidence, paired=policy.paired),
        acceptance=acceptance(evidence),
        drafts_by_load=at_loads(drafts),
        load_adaptations=adaptations(drafts),
        quality=quality(evidence),
        divergence=divergence(evidence),
        goodput_ms={} if policy.goodput is None else policy.goodput.bounds_ms,
        capacity=capacity(evidence, policy),
        costs=cost_comparisons(evidence, policy),
        structured_answers=structured_answers(evidence),
        sentinels=sentinel_answers(evidence.sentinels, policy),
        policy_name=policy.name,
        policy_hash=policy.policy_hash,
        data_hash=_both_hashes(evidence, control),
        versions=versions(),
    )


def judge_cells(
    evidence: Evidence, policy: Policy, control: Evidence | None = None
) -> tuple[Finding, ...]:
    """Return every cell's finding: at the declared looks if there are any, otherwise once."""
    judge = judge_once if evidence.looks is None else judge_at_looks
    return judge(evidence, policy, control)


def judge_lossless(
    evidence: Evidence, policy: Policy, control: Evidence | None = None
) -> tuple[Finding, ...]:
    """Return the findings that only a lossless policy has; none for another policy."""
    if policy.lossless is None:
        return ()
    number = None
    if evidence.looks is not None:
        evidence, policy, number = at_newest_look(evidence, evidence.looks, policy)
    found = (
        *lossless_findings(evidence, control, policy),
        *sampled_findings(evidence, policy),
        *sentinel_findings(evidence.sentinels, policy),
    )
    return tuple(replace(one, look=number or None) for one in found)


def release_outcome(findings: tuple[Finding, ...]) -> Outcome:
    """Fail if a prove or guard cell fails, pass if every prove cell passes, else inconclusive."""
    deciding = [f for f in findings if f.role is not Role.REPORT]
    proofs = [f for f in findings if f.role is Role.PROVE]
    if any(f.outcome is Outcome.FAIL for f in deciding):
        return Outcome.FAIL
    if proofs and all(f.outcome is Outcome.PASS for f in proofs):
        return Outcome.PASS
    return Outcome.INCONCLUSIVE


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
