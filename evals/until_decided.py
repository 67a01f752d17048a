"""What a run that ends when it is decided asks next: which cohorts, up to which look."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from collector.client import Client
from collector.contract import Finding, Outcome, Reason, Role, Verdict, is_input_band
from evals.evaluation.evaluate import evaluate_rollout
from evals.evidence import Evidence
from evals.gate.at_looks import require_judgeable
from evals.gate.release import judge_cells, release_outcome
from evals.gate.warmup import prepared
from evals.policy import Policy
from evals.registration import policy_for
from evals.source import judge, load_evidence

_SUSPECT: Final = 0.5
"""A cohort goes ahead of the others while its p value of harm, over all looks, is below this."""
_NOT_MENDED: Final = {
    Reason.MISSING, Reason.MISMATCH, Reason.TREATMENT, Reason.AA, Reason.LAUNCHES
}  # fmt: skip
"""Reasons that further pairs of the same run do not remove."""


class NextLooks(NamedTuple):
    """The state of a run after its newest looks."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    cohorts: Mapping[str, int]
    """The look that each of these cohorts completes next, from 1; empty at the end."""
    taken: Mapping[str, int]
    """The looks that each planned cohort has taken."""
    waiting: tuple[Finding, ...] = ()
    """Cells that must pass, are undecided, and can be decided by further pairs."""


def policy_of(client: Client, rollout: str, given: str | None) -> Policy:
    """Return the policy of a run: the one registered before its first pair, else the given one.

    Raises `PolicyError` if it cannot judge at declared looks.
    """
    registered = client.history(rollout).registered is not None
    policy = policy_for(client, rollout, None if registered else given).policy
    require_judgeable(policy)
    return policy


def judged(client: Client, rollout: str, policy: Policy, *, count: int) -> NextLooks | None:
    """Score and judge what the collector has of a run; `None` if it has nothing yet."""
    if rollout not in {one.rollout for one in client.rollouts()}:
        return None
    evaluate_rollout(client, rollout)
    return next_looks(load_evidence(client, rollout), policy, count=count)


def verdict(client: Client, rollout: str, policy: Policy) -> Verdict:
    """Score and judge what the collector has of a run, and store the verdict."""
    evaluate_rollout(client, rollout)
    found = judge(client, rollout, policy)
    client.post_verdict(found)
    return found


def next_looks(evidence: Evidence, policy: Policy, *, count: int) -> NextLooks:
    """Judge the looks taken, and choose those to complete next, of `count` in each cohort."""
    findings = judge_cells(prepared(evidence, policy), policy)
    taken = {} if evidence.looks is None else evidence.looks.taken
    return chosen(findings, {cohort: taken.get(cohort, 0) for cohort in evidence.workload}, count)


def chosen(findings: tuple[Finding, ...], taken: Mapping[str, int], count: int) -> NextLooks:
    """Choose the looks to complete next, given how many of `count` each cohort has taken.

    All cohorts go on together while a pooled cell is undecided, otherwise those with an undecided
    cell. The cohort that is most suspected of harm goes ahead of the others: its cells are judged
    at its own looks, and the pool's at looks that every cohort has reached. The run ends once the
    release passes or fails, or if further pairs could not decide it.
    """
    outcome, waiting = release_outcome(findings), tuple(filter(_waits, findings))
    left = {cohort: n for cohort, n in taken.items() if n < count}
    if outcome is not Outcome.INCONCLUSIVE or not waiting or not left:
        return NextLooks(outcome, findings, {}, taken, waiting)
    if (suspect := _suspect(findings, left)) is not None:
        return NextLooks(outcome, findings, {suspect: left[suspect] + 1}, taken, waiting)
    pooled = any(f.cohort is None or is_input_band(f.cohort) for f in waiting)
    wanted = {c: n for c, n in left.items() if pooled or any(f.cohort == c for f in waiting)}
    lowest = min(wanted.values(), default=0)
    ahead = {cohort: n + 1 for cohort, n in wanted.items() if n == lowest}
    return NextLooks(outcome, findings, ahead, taken, waiting)


def _waits(finding: Finding) -> bool:
    undecided = finding.role is Role.PROVE and finding.outcome is Outcome.INCONCLUSIVE
    return undecided and (finding.look is None or finding.reason not in _NOT_MENDED)


def _suspect(findings: Sequence[Finding], left: Mapping[str, int]) -> str | None:
    """Return the cohort with looks left whose harm is most likely, if any is likely."""
    found = [
        (f.p_fail, f.cohort)
        for f in findings
        if f.cohort in left and f.role is not Role.REPORT and f.p_fail is not None
    ]
    p, cohort = min(found, default=(1.0, None))
    return cohort if p < _SUSPECT else None
