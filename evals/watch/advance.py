"""The next state of a watch: a function of the state, a window of new pairs, and the policy."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from collector.contract import Watch, WatchCell, WatchCohort
from evals.evidence.applicability import NEEDS
from evals.evidence.columns import BoolColumn, Counts
from evals.policy import Policy
from evals.policy.rules import METRICS
from evals.watch import bounded
from evals.watch.acceptance import with_acceptance
from evals.watch.doubts import with_doubts
from evals.watch.early_pairs import EarlyPairs
from evals.watch.judgement import with_outcomes
from evals.watch.looks import with_looks
from evals.watch.path import extended
from evals.watch.plan import EXCEEDANCE, is_bounded, live, with_cohorts
from evals.watch.stretch import longest, starts_by_part
from evals.watch.window import Window

THRESHOLD_PAIRS = 300
"""Pairs whose baseline p99 becomes the rollback's threshold; they are not tested against it."""


def advance(watch: Watch, window: Window, early: EarlyPairs, policy: Policy, unix_ns: int) -> Watch:
    """Return the state after a window's new pairs; each window must follow the previous one."""
    watch = _past_warmup(watch, window, policy)
    at = done_at(window, policy)
    complete = counted(watch, at) & window.since(at) & _of_one_arm(window, policy)
    new = complete & window.first_repeat
    early.add(window, new, at)
    starts = starts_by_part(watch, window.evidence.started_unix_ns[new], policy)
    watch = replace(
        watch,
        arrived_up_to=window.end.arrived,
        scored_up_to=window.end.scored,
        pairs=watch.pairs + int(new.sum()),
        repeats=watch.repeats + int((complete & ~window.first_repeat).sum()),
        cohorts=_cohorts(watch, window, new, at, policy),
        workload=_workload(watch, window),
        recent_starts=starts,
        stretch=longest(watch, starts, policy, window.evidence.most_turns),
    )
    watch = with_acceptance(with_doubts(watch, window, new, policy), window, new)
    watch = _with_threshold(with_cohorts(watch, policy), early, at[new], policy)
    cells = (_cell(cell, watch, window, early, policy) for cell in watch.cells)
    return with_outcomes(
        replace(watch, cells=tuple(extended(cell, unix_ns) for cell in cells)), policy
    )


def refill(watch: Watch, window: Window, early: EarlyPairs, policy: Policy) -> None:
    """After a restart, add the early pairs of a window that is already counted."""
    at = done_at(window, policy)
    new = counted(watch, at) & window.since(at) & _of_one_arm(window, policy)
    early.add(window, new & window.first_repeat, at)


def done_at(window: Window, policy: Policy) -> Counts:
    """Return the number at which each pair, or answer of split traffic, was complete."""
    return window.complete_at if policy.paired else window.answered_at


def counted(watch: Watch, at: Counts) -> BoolColumn:
    """Return which pairs come after the warm-up."""
    if watch.count_after is None:
        return np.zeros(len(at), dtype=np.bool_)
    return np.asarray(at > watch.count_after)


def _of_one_arm(window: Window, policy: Policy) -> BoolColumn:
    """Return which pairs count: in split traffic, those that only one arm answered."""
    if policy.paired:
        return np.ones(len(window.evidence), dtype=np.bool_)
    return ~window.evidence.complete


def _past_warmup(watch: Watch, window: Window, policy: Policy) -> Watch:
    """Fix the start of counting, once as many pairs are complete as the policy drops."""
    drop = policy.sampling.warmup_drop
    if watch.count_after is not None:
        return watch
    if drop == 0:
        return replace(watch, count_after=0)
    at = done_at(window, policy)
    arrived = np.sort(at[window.since(at)])
    seen = sum(c.complete for c in watch.cohorts)
    if seen + len(arrived) < drop:
        return watch
    zero = tuple(replace(c, baseline=0, candidate=0, complete=0) for c in watch.cohorts)
    return replace(watch, count_after=int(arrived[drop - seen - 1]), cohorts=zero)


def _cohorts(
    watch: Watch, window: Window, new: BoolColumn, at: Counts, policy: Policy
) -> tuple[WatchCohort, ...]:
    """Add the window's arrivals to each cohort, and during the warm-up the pairs dropped."""
    known = {c.cohort: c for c in watch.cohorts}
    evidence = window.evidence
    after = watch.count_after
    which = window.first_repeat & _of_one_arm(window, policy)
    arrived = [which & window.since(a) & (a > (after or 0)) for a in window.arrived]
    warming = window.since(at) if after is None else new
    failed = evidence.baseline.failed | evidence.candidate.failed
    metrics = {rule.metric for rule in policy.rules if METRICS[rule.metric].kind == "score"}
    carried = [(m, evidence.carried(m)[0]) for m in sorted(metrics)]
    unsaid = ~np.any([evidence.carried(m)[1] for m in NEEDS], axis=0)
    for index in (-1, *range(len(evidence.cohorts))):
        rows = evidence.cohort_of == index
        if not rows.any():
            continue
        name = None if index < 0 else evidence.cohorts[index]
        was = known.get(name, WatchCohort(cohort=name))
        scored = {
            m: was.scored.get(m, 0) + int((rows & newly_scored(watch, window, m, policy)).sum())
            for m in metrics
        }
        known[name] = WatchCohort(
            cohort=name,
            baseline=was.baseline + int((rows & arrived[0]).sum()),
            candidate=was.candidate + int((rows & arrived[1]).sum()),
            complete=was.complete + int((rows & warming).sum()),
            failed=was.failed + int((rows & new & failed).sum()),
            duplicates=was.duplicates + int(window.duplicates[rows & new].sum()),
            scored=dict(was.scored) | {m: n for m, n in scored.items() if n},
            owed=_sum(was.owed, {m: int((rows & new & carries).sum()) for m, carries in carried}),
            unsaid=was.unsaid + int((rows & new & unsaid).sum()),
        )
    return tuple(known[name] for name in sorted(known, key=lambda name: (name or "", name is None)))


def _sum(was: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of two counters; a missing key is 0."""
    return {m: n for m in {*was, *more} if (n := was.get(m, 0) + more.get(m, 0))}


def _workload(watch: Watch, window: Window) -> Mapping[str, int]:
    """Return the planned pairs of each cohort: the maximum over all runs."""
    planned = dict(watch.workload)
    for cohort, pairs in window.evidence.workload.items():
        planned[cohort] = max(pairs, planned.get(cohort, 0))
    return planned


def newly_scored(watch: Watch, window: Window, metric: str, policy: Policy) -> BoolColumn:
    """Return which pairs count and were judged in this window."""
    at = done_at(window, policy)
    judged_now = window.newly_judged(metric, at, paired=policy.paired)
    return np.asarray(
        judged_now & counted(watch, at) & window.first_repeat & _of_one_arm(window, policy)
    )


def _with_threshold(watch: Watch, early: EarlyPairs, at: Counts, policy: Policy) -> Watch:
    """Fix the rollback's threshold once there are enough pairs; only later pairs are tested."""
    rollback = live(policy).rollback
    if rollback is None or watch.threshold_s is not None:
        return watch
    evidence = early.first(None, THRESHOLD_PAIRS)
    if evidence is None:
        return watch
    seconds = evidence.baseline.latency_s(rollback.latency)
    seconds = seconds[np.isfinite(seconds)]
    if len(seconds) < THRESHOLD_PAIRS // 2 or len(at) == 0:
        return watch
    # From the end of this window on: its pairs were seen before the threshold was fixed.
    return replace(
        watch, threshold_s=float(np.quantile(seconds, 0.99)), exceed_after=watch.arrived_up_to
    )


def _cell(
    cell: WatchCell, watch: Watch, window: Window, early: EarlyPairs, policy: Policy
) -> WatchCell:
    if not is_bounded(cell.metric):
        return with_looks(cell, early, _size(watch, cell.cohort, policy), policy)
    at = done_at(window, policy)
    if cell.metric != EXCEEDANCE and METRICS[cell.metric].kind == "score":
        counts = newly_scored(watch, window, cell.metric, policy)
    else:
        counts = counted(watch, at) & window.since(at) & window.first_repeat
        counts &= _of_one_arm(window, policy)
    if cell.metric == EXCEEDANCE:
        counts &= at > (
            np.iinfo(np.int64).max if watch.exceed_after is None else watch.exceed_after
        )
    if policy.paired:
        found = bounded.differences(cell, window, counts, watch.threshold_s, policy)
        return bounded.after_pairs(cell, found, policy.alpha_pass, watch.stretch)
    sides = window.evidence.candidate, window.evidence.baseline
    of = [bounded.outcome(cell, side, watch.threshold_s, policy) for side in sides]
    values = np.where(window.evidence.candidate.present, *of)
    return bounded.after_requests(cell, window, counts, values, watch.stretch, policy)


def _size(watch: Watch, cohort: str | None, policy: Policy) -> int:
    """Return the pairs of a scope, or the answers of the arm that has fewer."""
    if watch.count_after is None:
        return 0
    of = [c for c in watch.cohorts if cohort is None or c.cohort == cohort]
    if policy.paired:
        return sum(c.complete for c in of)
    return min(sum(c.baseline for c in of), sum(c.candidate for c in of))
