"""Decide the cells so far: passes one by one, failures over the whole family."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from collector.contract import Outcome, Reason, Role, SetAside, Watch, WatchCell, WatchCohort
from evals.gate.stray import stray
from evals.gate.summary import left_open
from evals.policy import Policy
from evals.policy.rules import METRICS
from evals.stats.holm import adjusted
from evals.stats.sample_ratio import sample_ratio_p
from evals.watch.bounded import log_e_at_worst, nothing_at_stake
from evals.watch.doubts import doubt_of
from evals.watch.plan import EXCEEDANCE, chain, cohorts_of, loss_margin
from evals.watch.seen import unlike
from evals.watch.wording import message, reason_words, subject


def with_outcomes(watch: Watch, policy: Policy) -> Watch:
    """Return the watch with the outcome of each cell and of the release.

    P values and e-values are valid at every moment, and so is Holm's correction of such p values:
    a fail stays. A pass of an e-process stays too, unless harm shows.
    """
    deciding = [i for i, cell in enumerate(watch.cells) if cell.role is not Role.REPORT]
    chains = [chain(watch.cells[i]) for i in deciding]
    corrected = adjusted([watch.cells[i].p_fail for i in deciding], chains)
    p_of = dict(zip(deciding, corrected, strict=True))
    to_fail = math.log(max(len(set(chains)), 1) / policy.alpha_fail_family)
    cells = []
    for i, cell in enumerate(watch.cells):
        p = p_of.get(i, cell.p_fail)
        found = _outcome(cell, p, watch, policy)
        decided = replace(
            cell,
            outcome=found.outcome,
            reason=found.reason,
            because=found.because,
            log_e_to_pass=None if cell.passing is None else -math.log(policy.alpha_pass),
            log_e_to_fail=None if cell.failing is None else to_fail,
        )
        cells.append(replace(decided, message=message(decided, watch)))
    return released(replace(watch, cells=tuple(cells)), policy)


class _Decision(NamedTuple):
    outcome: Outcome
    reason: Reason | None = None
    because: str | None = None


def _outcome(cell: WatchCell, p: float | None, watch: Watch, policy: Policy) -> _Decision:
    mismatch = _mismatched(cell, watch, policy)
    incomparable = not policy.paired and (mismatch or any(unlike(watch, policy)))
    harmed = p is not None and p <= policy.alpha_fail_family
    if cell.outcome is Outcome.FAIL or (harmed and not incomparable):
        return _Decision(Outcome.FAIL)
    obstacle = _obstacle(cell, watch, policy, mismatch=mismatch)
    if obstacle is not None:
        return obstacle
    if not _passes(cell, policy):
        return _Decision(Outcome.INCONCLUSIVE, _why(cell, watch))
    if _survives(cell, watch, policy):
        return _Decision(Outcome.PASS)
    return _Decision(Outcome.INCONCLUSIVE, Reason.MISSING)


def _obstacle(cell: WatchCell, watch: Watch, policy: Policy, *, mismatch: bool) -> _Decision | None:
    reason = because = None
    if policy.validity.aa_control == "required":
        reason = Reason.AA
    elif mismatch:
        reason = Reason.SRM
    elif (doubt := doubt_of(cell, watch, policy)) is not None:
        reason, because = doubt.reason, doubt.words
    elif cell.cohort is not None and cell.n < policy.min_n:
        reason = Reason.TOO_FEW
    elif nothing_at_stake(cell):
        reason = Reason.MISSING
    return None if reason is None else _Decision(Outcome.INCONCLUSIVE, reason, because)


def _survives(cell: WatchCell, watch: Watch, policy: Policy) -> bool:
    """Return whether a cell passes even if every pair that waits for scores is lost.

    Once it did, the pass stays proved.
    """
    pairs, share = waiting(cell, watch)
    if pairs == 0 or cell.outcome is Outcome.PASS:
        return True
    if cell.passing is not None:
        return log_e_at_worst(cell.passing, pairs, watch.stretch) >= -math.log(policy.alpha_pass)
    limit = cell.upper if cell.bound == "max" else cell.lower
    if limit is None:
        return False
    loss = limit if cell.bound == "max" else -limit
    return (1 - share) * loss + share <= loss_margin(cell)


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


def _why(cell: WatchCell, watch: Watch) -> Reason:
    taken = [one for one in cell.looks if one.outcome is not None]
    if taken and taken[-1].reason is not None:
        return taken[-1].reason
    pairs, share = waiting(cell, watch)
    loss = (cell.estimate or 0.0) * (1 if cell.bound == "max" else -1)
    too_many = pairs and (1 - share) * loss + share > loss_margin(cell)
    return Reason.MISSING if too_many else Reason.TOO_FEW


class Waiting(NamedTuple):
    """Complete pairs that wait for their scores."""

    pairs: int
    share: float
    """Share of the pairs that need a score."""


def waiting(cell: WatchCell, watch: Watch) -> Waiting:
    """Return the pairs that wait for a score, in cohorts that need one or have some."""
    if cell.metric == EXCEEDANCE or METRICS[cell.metric].kind != "score":
        return Waiting(0, 0.0)
    owed = scored = 0
    for cohort in _scope(cell, watch):
        given, carried = cohort.scored.get(cell.metric, 0), cohort.owed.get(cell.metric, 0)
        # Scores of pairs that carry nothing: by an evaluator that needs nothing, or not recorded.
        owed += cohort.complete if given > carried else carried
        scored += given
    return Waiting(owed - scored, 1 - scored / owed) if owed > scored else Waiting(0, 0.0)


def _mismatched(cell: WatchCell, watch: Watch, policy: Policy) -> bool:
    """Return whether the arms' counts deviate from the design's shares."""
    scope = _scope(cell, watch)
    share = 0.5 if policy.paired else policy.sampling.candidate_share
    counts = sum(c.candidate for c in scope), sum(c.baseline for c in scope)
    p = sample_ratio_p(*counts, split=share)
    return p is not None and p < policy.validity.srm_p_min


def _scope(cell: WatchCell, watch: Watch) -> Sequence[WatchCohort]:
    return [c for c in watch.cohorts if cell.cohort is None or c.cohort == cell.cohort]


def released(watch: Watch, policy: Policy) -> Watch:
    """Return the watch with the release's outcome, from its cells."""
    deciding = [c for c in watch.cells if c.role is not Role.REPORT]
    aside = {one.cohort for one in set_aside(watch, policy)}
    proofs = [c for c in deciding if c.role is Role.PROVE and c.cohort not in aside]
    failed = [c for c in deciding if c.outcome is Outcome.FAIL]
    passed = [c for c in proofs if c.outcome is Outcome.PASS]
    without = rules_without_cells(watch, policy)
    wanted = len(proofs) + len(without)
    seen = f"{watch.pairs:,} {'requests' if any(c.split for c in watch.cells) else 'pairs'}"
    if failed:
        outcome, shown = Outcome.FAIL, failed
        words = f"fails after {seen}: {len(failed)} of {len(deciding)} cells are beyond the margin."
    elif proofs and len(passed) == wanted:
        outcome, shown = Outcome.PASS, passed
        words = f"passes after {seen}: all {wanted} required cells are within margin."
    else:
        outcome, shown = Outcome.INCONCLUSIVE, [c for c in proofs if c not in passed]
        words = f"is undecided after {seen}: {len(passed)} of {wanted} required cells are proved."
    words += left_open(
        outcome,
        not_judged=not_judged(watch, policy),
        undecided=(),
        reported=(),
        aside=set_aside(watch, policy),
    )
    reasons = (*(cell.message for cell in shown), *(() if failed else without))
    return replace(watch, outcome=outcome, summary=f"{watch.rollout} {words}", reasons=reasons)


def rules_without_cells(watch: Watch, policy: Policy) -> tuple[str, ...]:
    """Return the prove rules by cohort that made no cell, with the reason."""
    cohorts = sorted({c.cohort for c in watch.cohorts if c.cohort is not None} | {*watch.workload})
    found = []
    for rule in policy.rules:
        if rule.role is not Role.PROVE or rule.scope == "pooled":
            continue
        if not cohorts_of(rule, cohorts, watch):
            why = "no pair has a score" if cohorts else "no request names a cohort"
            name = METRICS[rule.metric].stat_words(rule.stat)
            found.append(f"{name}, by cohort ({why})")
        if policy.input_tokens is not None and rule.cohorts is None:
            name = METRICS[rule.metric].stat_words(rule.stat)
            found.append(f"{name}, by band of input tokens (`draftgate gate` judges these)")
    return tuple(found)


def not_judged(watch: Watch, policy: Policy) -> tuple[str, ...]:
    """Return the cells that are not judged: rules without cohorts, and cells without evidence."""
    return (
        *rules_without_cells(watch, policy),
        *(
            f"{subject(c, watch)} ({reason_words(c)})"
            for c in watch.cells
            if c.role is not Role.REPORT
            and c.outcome is Outcome.INCONCLUSIVE
            and c.reason not in {None, Reason.TOO_FEW, Reason.TOO_CLOSE}
        ),
    )


def set_aside(watch: Watch, policy: Policy) -> tuple[SetAside, ...]:
    """Return the stray cohorts, which do not block a release."""
    pairs = {c.cohort: c.complete for c in watch.cohorts if c.cohort is not None}
    return stray(pairs, sum(c.complete for c in watch.cohorts), watch.workload, policy)
