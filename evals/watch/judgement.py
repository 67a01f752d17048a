"""From cells to what is decided so far: passes one by one, failures over the whole family."""

import math
from collections.abc import Sequence
from dataclasses import replace

from collector.contract import Outcome, Reason, Role, Watch, WatchCell, WatchCohort
from evals.policy import METRICS, Policy
from evals.stats.holm import adjusted
from evals.stats.sample_ratio import sample_ratio_p
from evals.watch.bounded import nothing_at_stake
from evals.watch.plan import EXCEEDANCE, chain, loss_margin
from evals.watch.wording import message


def judged(watch: Watch, policy: Policy) -> Watch:
    """Return the watch with the outcome of each cell and of the release.

    P values and e-values hold at every moment, and Holm's correction of p values that do so does
    too: a fail stays. So does a pass of an e-process, until harm shows.
    """
    deciding = [i for i, cell in enumerate(watch.cells) if cell.role is not Role.REPORT]
    chains = [chain(watch.cells[i]) for i in deciding]
    corrected = adjusted([watch.cells[i].p_fail for i in deciding], chains)
    p_of = dict(zip(deciding, corrected, strict=True))
    to_fail = math.log(max(len(set(chains)), 1) / policy.alpha_fail_family)
    cells = []
    for i, cell in enumerate(watch.cells):
        p = p_of.get(i, cell.p_fail)
        outcome, reason = _outcome(cell, p, watch, policy)
        decided = replace(
            cell,
            outcome=outcome,
            reason=reason,
            log_e_to_pass=None if cell.passing is None else -math.log(policy.alpha_pass),
            log_e_to_fail=None if cell.failing is None else to_fail,
        )
        cells.append(replace(decided, message=message(decided, watch)))
    return _released(replace(watch, cells=tuple(cells)))


def _outcome(
    cell: WatchCell, p: float | None, watch: Watch, policy: Policy
) -> tuple[Outcome, Reason | None]:
    mismatch = _mismatched(cell, watch, policy)
    harmed = p is not None and p <= policy.alpha_fail_family
    if cell.outcome is Outcome.FAIL or (harmed and (policy.paired or not mismatch)):
        return Outcome.FAIL, None
    obstacle = _obstacle(cell, watch, policy, mismatch=mismatch)
    if obstacle is not None:
        return Outcome.INCONCLUSIVE, obstacle
    return (Outcome.PASS, None) if _passes(cell, policy) else (Outcome.INCONCLUSIVE, _why(cell))


def _obstacle(cell: WatchCell, watch: Watch, policy: Policy, *, mismatch: bool) -> Reason | None:
    if policy.validity.aa_control == "required":
        return Reason.AA
    if mismatch:
        return Reason.SRM
    if cell.cohort is not None and cell.n < policy.min_n:
        return Reason.TOO_FEW
    missing = _unjudged_decide(cell, watch) or nothing_at_stake(cell)
    return Reason.MISSING if missing else None


def _unjudged_decide(cell: WatchCell, watch: Watch) -> bool:
    """Say whether the loss is beyond the margin if every pair that waits for scores is lost."""
    share = waiting(cell, watch)
    if share == 0:
        return False
    seen = cell.estimate or 0.0
    loss = seen if cell.bound == "max" else -seen
    return (1 - share) * loss + share > loss_margin(cell)


def _passes(cell: WatchCell, policy: Policy) -> bool:
    if cell.passing is not None:
        return cell.passing.highest_log_e >= -math.log(policy.alpha_pass)
    if cell.split is not None:
        if cell.outcome is Outcome.PASS:
            return True
        if cell.bound == "max":
            return cell.upper is not None and cell.upper <= cell.margin
        return cell.lower is not None and cell.lower >= cell.margin
    taken = [one for one in cell.looks if one.outcome is not None]
    return bool(taken) and taken[-1].outcome is Outcome.PASS


def _why(cell: WatchCell) -> Reason:
    taken = [one for one in cell.looks if one.outcome is not None]
    return (taken[-1].reason if taken else None) or Reason.TOO_FEW


def waiting(cell: WatchCell, watch: Watch) -> float:
    """Return the share of complete pairs, in cohorts that have scores, that wait for theirs."""
    if cell.metric == EXCEEDANCE or METRICS[cell.metric].kind != "score":
        return 0.0
    used = [c for c in _scope(cell, watch) if c.scored.get(cell.metric)]
    complete = sum(c.complete for c in used)
    return 1 - sum(c.scored[cell.metric] for c in used) / complete if complete else 0.0


def _mismatched(cell: WatchCell, watch: Watch, policy: Policy) -> bool:
    """Say whether the arms' counts are not in the design's shares."""
    scope = _scope(cell, watch)
    share = 0.5 if policy.paired else policy.sampling.candidate_share
    counts = sum(c.candidate for c in scope), sum(c.baseline for c in scope)
    p = sample_ratio_p(*counts, split=share)
    return p is not None and p < policy.validity.srm_p_min


def _scope(cell: WatchCell, watch: Watch) -> Sequence[WatchCohort]:
    return [c for c in watch.cohorts if cell.cohort is None or c.cohort == cell.cohort]


def _released(watch: Watch) -> Watch:
    deciding = [c for c in watch.cells if c.role is not Role.REPORT]
    proofs = [c for c in deciding if c.role is Role.PROVE]
    failed = [c for c in deciding if c.outcome is Outcome.FAIL]
    passed = [c for c in proofs if c.outcome is Outcome.PASS]
    seen = f"{watch.pairs:,} {'requests' if any(c.split for c in watch.cells) else 'pairs'}"
    if failed:
        outcome, shown = Outcome.FAIL, failed
        words = f"fails after {seen}: {len(failed)} of {len(deciding)} cells are beyond the margin."
    elif proofs and len(passed) == len(proofs):
        outcome, shown = Outcome.PASS, passed
        words = f"passes after {seen}: all {len(proofs)} required cells are within margin."
    else:
        outcome, shown = Outcome.INCONCLUSIVE, [c for c in proofs if c not in passed]
        words = (
            f"is undecided after {seen}: {len(passed)} of {len(proofs)} required cells are proved."
        )
    reasons = tuple(cell.message for cell in shown)
    return replace(watch, outcome=outcome, summary=f"{watch.rollout} {words}", reasons=reasons)
