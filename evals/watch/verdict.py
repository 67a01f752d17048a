"""Convert a watch to a verdict."""

from collector.contract import Finding, Outcome, Verdict, Watch, WatchCell
from evals.gate.release import versions
from evals.policy import Policy
from evals.stats.significant import significant
from evals.watch.acceptance import drift_words
from evals.watch.judgement import not_judged, set_aside
from evals.watch.wording import reason_words, stretch_words

WATCH_VERSION = "3"


def to_verdict(watch: Watch, policy: Policy) -> Verdict:
    """Return the verdict on all counted pairs; its data hash is that of the place reached.

    It has no latency percentiles, acceptance and scores by arm; the gate's verdict has those.
    """
    incomplete = sum(c.baseline + c.candidate - 2 * c.complete for c in watch.cohorts)
    return Verdict(
        rollout=watch.rollout,
        outcome=watch.outcome,
        summary=watch.summary,
        reasons=watch.reasons,
        not_judged=not_judged(watch, policy),
        set_aside=set_aside(watch, policy),
        suspicions=drift_words(watch),
        assumption=f"Valid at every moment, if {stretch_words(policy)}.",
        pairs=watch.pairs,
        incomplete_pairs=max(incomplete, 0) if policy.paired else 0,
        failed_pairs=sum(c.failed for c in watch.cohorts),
        duplicates=sum(c.duplicates for c in watch.cohorts),
        findings=tuple(_finding(cell, policy) for cell in watch.cells),
        latency=(),
        acceptance=(),
        quality=(),
        policy_name=watch.policy_name,
        policy_hash=watch.policy_hash,
        data_hash=watch.place_hash,
        versions=versions() | {"watch": WATCH_VERSION},
    )


def _finding(cell: WatchCell, policy: Policy) -> Finding:
    taken = [one for one in cell.looks if one.outcome is not None]
    alpha = taken[-1].alpha if taken else policy.alpha_pass
    needed = None if cell.next_look is None else cell.next_look - cell.n
    return Finding(
        metric=cell.metric,
        stat=cell.stat,
        cohort=cell.cohort,
        role=cell.role,
        outcome=cell.outcome,
        reason=cell.reason if cell.outcome is Outcome.INCONCLUSIVE else None,
        bound=cell.bound,
        margin=cell.margin,
        unit="ratio" if cell.stat.endswith("_ratio") else "difference",
        confidence=1 - alpha,
        n=cell.n,
        n_needed=needed if cell.outcome is Outcome.INCONCLUSIVE else None,
        estimate=significant(cell.estimate),
        lower=significant(cell.lower),
        upper=significant(cell.upper),
        p_fail=significant(cell.p_fail, 6),
        method=cell.method,
        message=cell.message,
        because=reason_words(cell) if cell.outcome is Outcome.INCONCLUSIVE else None,
    )
