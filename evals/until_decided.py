"""The next questions of a run that ends when it is decided: which cohorts, up to which look."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from collector.client import Client
from collector.columns import Table
from collector.contract import Finding, Outcome, Reason, Role, Verdict, is_input_band
from evals.errors import PolicyError
from evals.evaluation.evaluate import evaluate_rollout
from evals.evidence.columns import Evidence
from evals.evidence.launches import ENOUGH
from evals.evidence.pairs_table import from_table
from evals.gate.at_looks import require_judgeable
from evals.gate.derived import with_derived
from evals.gate.release import judge_cells, judge_lossless, release_outcome
from evals.gate.warmup import prepared
from evals.lossless.comparer import Comparer
from evals.policy import Policy
from evals.policy.registration import policy_for
from evals.source import ComparedWith, judge_tables

_SUSPECT: Final = 0.5
"""A cohort goes ahead of the others while its p value of harm, over all looks, is below this."""
_NOT_MENDED: Final = {
    Reason.MISSING, Reason.MISMATCH, Reason.TREATMENT, Reason.AA, Reason.LAUNCHES
}  # fmt: skip
"""Reasons that further pairs of the same launches do not remove."""


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


class Design(NamedTuple):
    """The looks of a run."""

    looks: int
    """Looks of each cohort."""
    relaunched: bool = False
    """Whether each look has a launch of the servers of its own."""


def policy_of(client: Client, rollout: str, given: str | None, launches: int = 1) -> Policy:
    """Return the policy of a run: the one registered before its first pair, else the given one.

    Raises `PolicyError` if it cannot judge at declared looks, or would decide by fewer launches
    than limits over launches take.
    """
    registered = client.history(rollout).registered is not None
    policy = policy_for(client, rollout, None if registered else given).policy
    require_judgeable(policy)
    if launches > 1:
        _require_launches(policy, launches)
    return policy


def _require_launches(policy: Policy, launches: int) -> None:
    least = 0 if policy.launches is None else policy.launches.min
    if not ENOUGH <= least <= launches:
        raise PolicyError(
            f"{policy.name}: launches.min: wanted {ENOUGH} to {launches} (got {least or 'none'}); "
            f"load.launches is {launches}, a look is judged after each launch, and times may be "
            f"decided only once limits hold over launches: write `launches: {{min: {ENOUGH}}}`"
        )


def compared_with(
    policy: Policy, control: str | None, rescore: str | None, rescore_draft: str | None
) -> ComparedWith:
    """Return what a run is compared with; loads the models if the policy is a lossless one."""
    if policy.lossless is None:
        return ComparedWith(control)
    return ComparedWith(control, Comparer(rescore, policy.lossless.tolerance, rescore_draft))


def scored(
    client: Client, rollout: str, compared: ComparedWith
) -> tuple[Table, Table | None] | None:
    """Score what the collector has of a run, and return its tables; `None` without answers."""
    if rollout not in {one.rollout for one in client.rollouts()}:
        return None
    evaluate_rollout(client, rollout)
    return compared.tables(client, rollout)


def verdict(client: Client, rollout: str, policy: Policy, compared: ComparedWith) -> Verdict:
    """Score and judge what the collector has of a run, and store the verdict."""
    evaluate_rollout(client, rollout)
    found = judge_tables(client, rollout, policy, compared.tables(client, rollout))
    client.post_verdict(found)
    return found


def judged(tables: tuple[Table, Table | None], policy: Policy, design: Design) -> NextLooks:
    """Judge the looks taken of a run, and choose those to complete next."""
    table, control = tables
    other = None if control is None else with_derived(from_table(control), policy)
    return next_looks(from_table(table), policy, design, other)


def next_looks(
    evidence: Evidence, policy: Policy, design: Design, control: Evidence | None = None
) -> NextLooks:
    """Judge the looks taken, and choose those to complete next."""
    there = prepared(evidence, policy)
    findings = (
        *judge_cells(there, policy, control),
        *judge_lossless(there, policy, control),
    )
    taken = {} if evidence.looks is None else evidence.looks.taken
    return chosen(findings, {cohort: taken.get(cohort, 0) for cohort in evidence.workload}, design)


def chosen(findings: tuple[Finding, ...], taken: Mapping[str, int], design: Design) -> NextLooks:
    """Choose the looks to complete next, given how many each cohort has taken.

    All cohorts go on together while a pooled cell is undecided, otherwise those with an undecided
    cell. The cohort that is most suspected of harm goes ahead of the others, unless each look has a
    launch of its own: its cells are judged at its own looks, and the pool's at looks that every
    cohort has reached. The run ends once the release passes or fails, or if further pairs could not
    decide it.
    """
    outcome = release_outcome(findings)
    waiting = tuple(one for one in findings if _waits(one, design))
    left = {cohort: n for cohort, n in taken.items() if n < design.looks}
    if outcome is not Outcome.INCONCLUSIVE or not waiting or not left:
        return NextLooks(outcome, findings, {}, taken, waiting)
    if not design.relaunched and (suspect := _suspect(findings, left)) is not None:
        return NextLooks(outcome, findings, {suspect: left[suspect] + 1}, taken, waiting)
    pooled = any(f.cohort is None or is_input_band(f.cohort) for f in waiting)
    wanted = {c: n for c, n in left.items() if pooled or any(f.cohort == c for f in waiting)}
    lowest = min(wanted.values(), default=0)
    ahead = {cohort: n + 1 for cohort, n in wanted.items() if n == lowest}
    return NextLooks(outcome, findings, ahead, taken, waiting)


def _waits(finding: Finding, design: Design) -> bool:
    if finding.role is not Role.PROVE or finding.outcome is not Outcome.INCONCLUSIVE:
        return False
    if design.relaunched and finding.reason is Reason.LAUNCHES:
        return True
    return finding.look is None or finding.reason not in _NOT_MENDED


def _suspect(findings: Sequence[Finding], left: Mapping[str, int]) -> str | None:
    """Return the cohort with looks left whose harm is most likely, if any is likely."""
    found = [
        (f.p_fail, f.cohort)
        for f in findings
        if f.cohort in left and f.role is not Role.REPORT and f.p_fail is not None
    ]
    p, cohort = min(found, default=(1.0, None))
    return cohort if p < _SUSPECT else None
