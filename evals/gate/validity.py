"""Check that the evidence may be judged: alike arms, sample ratio, drift, load generator."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest, ks_2samp

from collector.contract import LATENCIES, Reason
from evals.evidence.columns import BoolColumn, Counts, Evidence, FloatColumn, Side
from evals.gate.arrangement import Arrangement, of_arm, strata
from evals.gate.cache_cells import cached_share
from evals.gate.capacity import other_loads
from evals.gate.cells import Cell
from evals.gate.conditions import unlike_conditions
from evals.gate.cut_answers import cut_answers, uncounted_on_one_side
from evals.gate.invented_times import implausible
from evals.gate.likeness import differences
from evals.gate.measured import MAX_UNBOUNDED_SHARE, Obstacle
from evals.gate.measured_times import contradictions, copies, no_moments
from evals.gate.sentinel_cells import state_obstacles
from evals.gate.treatment import shortcomings
from evals.policy import Policy
from evals.policy.rules import KINDS, METRICS, Kind
from evals.stats.drift import (
    ArmSeries,
    EffectOf,
    Trend,
    candidate_later,
    paired_trend,
    unpaired_trend,
)
from evals.stats.holm import adjusted
from evals.stats.sample_ratio import mix_p, sample_ratio_p

MAX_ORDER = 0.75
"""Maximum probability that one arm's request starts later than the other's; above it the arms did
not run side by side."""
MAX_APART = 0.1
"""Maximum share of the requests by which one arm may be later, far in time from the other."""
_FAR = 0.05
"""Share of the run's duration that counts as far."""
_TIMED: tuple[Kind, ...] = ("latency", "goodput", "cost", "throughput")


class Violation(NamedTuple):
    """A violated condition, and the cells that it affects."""

    obstacle: Obstacle
    scope: str | None
    """A cohort, or `None` for all pairs."""
    metric: str | None = None
    """`None`: every metric of `kinds`."""
    kinds: tuple[Kind, ...] = KINDS
    every_scope: bool = False

    def touches(self, cell: Cell) -> bool:
        """Return whether the violation affects the cell."""
        if self.metric not in (None, cell.rule.metric) or cell.metric.kind not in self.kinds:
            return False
        return self.every_scope or cell.cohort == self.scope


def violations(evidence: Evidence, policy: Policy) -> tuple[Violation, ...]:
    """Return all violations, in a fixed order."""
    return (
        *(
            Violation(
                Obstacle(
                    Reason.MISMATCH,
                    unlike.words,
                    bars_fail=not unlike.served,
                    bars_harm=not unlike.served,
                ),
                None,
                unlike.metric,
                every_scope=True,
            )
            for unlike in differences(evidence, policy)
        ),
        *(
            Violation(found, None, every_scope=True)
            for found in chain(
                shortcomings(evidence),
                cut_answers(evidence, policy),
                uncounted_on_one_side(evidence, policy),
                copies(evidence, paired=policy.paired),
                no_moments(evidence),
            )
        ),
        *(
            Violation(found, None, kinds=("score", "tokens"), every_scope=True)
            for found in state_obstacles(evidence.sentinels, policy)
        ),
        *(
            Violation(found, None, kinds=_TIMED, every_scope=True)
            for found in chain(contradictions(evidence), unlike_conditions(evidence))
        ),
        *(
            Violation(
                found, None, None if metric == "e2e" else metric, kinds=_TIMED, every_scope=True
            )
            for metric, found in implausible(evidence)
        ),
        *(
            Violation(found, None, kinds=("throughput",), every_scope=True)
            for found in other_loads(evidence)
        ),
        *_unrun(evidence),
        *_sample_ratio(evidence, policy),
        *_order(evidence, policy),
        *_drift(evidence, policy),
        *_client_lag(evidence, policy),
        *_too_few_launches(evidence, policy),
    )


def _too_few_launches(evidence: Evidence, policy: Policy) -> Iterator[Violation]:
    """Yield a violation if there are fewer launches of the servers than the policy requires."""
    if policy.launches is None:
        return
    least, found = policy.launches.min, evidence.launches
    if found is not None and found.independent >= least:
        return
    needed = None if found is None else least - found.independent
    words = (
        "not every answer names the launch of its server (`draftgate.launch`), and the policy "
        f"wants {least} launches at least"
        if found is None
        else f"{found.independent} independent launches of the arms' servers; needs {needed} more "
        f"(at least {least} in all)"
    )
    obstacle = Obstacle(Reason.LAUNCHES, words, launches_needed=needed)
    yield Violation(obstacle, None, kinds=_TIMED, every_scope=True)


def _unrun(evidence: Evidence) -> Iterator[Violation]:
    """Yield a violation if only a part of the workload arrived: the rest is unknown."""
    for cohort, planned in sorted(evidence.workload.items()):
        arrived = int(evidence.scope(cohort).sum())
        if arrived < planned * (1 - MAX_UNBOUNDED_SHARE):
            words = f"`{cohort}` has {arrived:,} pairs of {planned:,} that the workload has"
            obstacle = Obstacle(Reason.MISSING, words, bars_fail=False)
            bands = () if evidence.bands is None else evidence.bands.names
            yield from (Violation(obstacle, scope) for scope in (cohort, None, *bands))


def _sample_ratio(evidence: Evidence, policy: Policy) -> Iterator[Violation]:
    """Compare the arms' counts with the design's, by scope; Holm over the scopes.

    In paired designs every request was sent to both arms: missing answers are judged by the cells
    of failures, and a mismatch makes only the other cells undecided.
    """
    share = 0.5 if policy.paired else policy.sampling.candidate_share
    scopes = (None, *evidence.all_cohorts)
    counts = [_arrived(evidence, evidence.scope(scope)) for scope in scopes]
    found = [sample_ratio_p(c, b, split=share) for c, b in counts]
    kinds = Violation(Obstacle(Reason.SRM, ""), None).kinds
    if policy.paired:
        kinds = tuple(kind for kind in kinds if kind != "failures")
    for scope, (c, b), p in zip(scopes, counts, adjusted(found), strict=True):
        if p is not None and p < policy.validity.srm_p_min:
            words = (
                f"{c} candidate and {b} baseline answers arrived where a share of {share:g} was "
                f"the candidate's (p = {p:.1g})"
            )
            yield Violation(Obstacle(Reason.SRM, words), scope, kinds=kinds)
    mix = [[_arrived(evidence, evidence.scope(s))[i] for s in evidence.cohorts] for i in (0, 1)]
    p = None if policy.paired else mix_p(mix[0], mix[1])
    if p is not None and p < policy.validity.srm_p_min:
        words = f"the arms' mixes of cohorts differ (p = {p:.1g})"
        yield Violation(Obstacle(Reason.SRM, words), None, kinds=kinds)


def _arrived(evidence: Evidence, scope: BoolColumn) -> tuple[int, int]:
    return (
        int((evidence.candidate.present & scope).sum()),
        int((evidence.baseline.present & scope).sum()),
    )


def _order(evidence: Evidence, policy: Policy) -> Iterator[Violation]:
    """Yield a violation for times if the arms ran one after the other, or clocks disagree."""
    sides = (evidence.candidate, evidence.baseline)
    later = candidate_later(*(_starts(side) for side in sides))
    if later is None:
        return
    if not 1 - MAX_ORDER <= later <= MAX_ORDER:
        words = (
            f"the arms did not run side by side: a candidate's request starts later than a "
            f"baseline's in {later:.0%} of all cases, wanted about half"
        )
    elif (apart := _apart(evidence, policy)) is not None:
        words = apart
    else:
        return
    yield Violation(Obstacle(Reason.DRIFT, words), None, kinds=_TIMED, every_scope=True)


def _apart(evidence: Evidence, policy: Policy) -> str | None:
    """Return a sentence if a part of the arms' requests is far apart in time."""
    level = policy.validity.srm_p_min
    if not policy.paired:
        starts = [_starts(side) for side in (evidence.candidate, evidence.baseline)]
        found = ks_2samp(*starts)
        if found.pvalue >= level or found.statistic < MAX_APART:
            return None
        return f"the arms' requests are not spread over time alike (p = {found.pvalue:.1g})"
    both = evidence.complete & (evidence.started_unix_ns >= 0)
    gaps = (evidence.candidate.start_unix_ns - evidence.baseline.start_unix_ns)[both] / 1e9
    if len(gaps) == 0:
        return None
    started = evidence.started_unix_ns[both]
    far = _FAR * float(started.max() - started.min()) / 1e9
    late, early = int((gaps > far).sum()), int((gaps < -far).sum())
    if abs(late - early) <= MAX_APART * len(gaps) or _even_p(late, early) >= level:
        return None
    return (
        f"the sides of {late + early:,} of {len(gaps):,} pairs started over {far:.3g} s apart, "
        f"the candidate's later in {late:,}: the arms did not run side by side, or their clocks "
        "disagree"
    )


def _even_p(one: int, other: int) -> float:
    return float(binomtest(one, one + other).pvalue)


def _starts(side: Side) -> Counts:
    return side.start_unix_ns[side.present & (side.start_unix_ns >= 0)]


def _drift(evidence: Evidence, policy: Policy) -> Iterator[Violation]:
    """Test each metric's difference of the arms against time, within cohorts; Holm over metrics.

    With many pairs the slightest trend is significant, so one that explains almost nothing is
    ignored.
    """
    metrics = sorted({rule.metric for rule in policy.rules})
    look = _paired_trend if policy.paired else _split_trend
    trends = [look(evidence, metric, policy) for metric in metrics]
    corrected = adjusted([trend and trend.p for trend in trends])
    limits = policy.validity
    for metric, trend, p in zip(metrics, trends, corrected, strict=True):
        if trend is None or p is None or p >= limits.drift_p_min:
            continue
        if abs(trend.correlation) < limits.drift_min_correlation:
            continue
        words = (
            "the arms' difference changed while the rollout ran (rank correlation with time "
            f"{trend.correlation:+.2f}, p = {p:.1g})"
        )
        yield Violation(Obstacle(Reason.DRIFT, words), None, metric, every_scope=True)


def _paired_trend(evidence: Evidence, metric: str, policy: Policy) -> Trend | None:
    candidate, baseline = (
        _outcome(evidence, side, metric) for side in (evidence.candidate, evidence.baseline)
    )
    with np.errstate(invalid="ignore"):
        differences = candidate - baseline
    times = evidence.baseline.start_unix_ns
    rows = ~np.isnan(differences) & (times >= 0)
    timed = METRICS[metric].timed
    effect_of = _effect_of(of_arm(evidence, evidence.baseline, rows, policy, timed=timed), metric)
    within = strata(evidence, timed=timed)[rows]
    return paired_trend(differences[rows], times[rows], within, effect_of)


def _split_trend(evidence: Evidence, metric: str, policy: Policy) -> Trend | None:
    arms = list[ArmSeries]()
    for side in (evidence.candidate, evidence.baseline):
        outcome = _outcome(evidence, side, metric)
        rows = ~np.isnan(outcome) & side.present & (side.start_unix_ns >= 0)
        timed = METRICS[metric].timed
        effect_of = _effect_of(of_arm(evidence, side, rows, policy, timed=timed), metric)
        within = strata(evidence, timed=timed)[rows]
        arms.append(ArmSeries(outcome[rows], side.start_unix_ns[rows], within, effect_of))
    return unpaired_trend(arms[0], arms[1])


def _effect_of(arrangement: Arrangement, metric: str) -> EffectOf:
    """Return the design effect of outcomes; losses come in the declared stretches."""
    lost = METRICS[metric].scored or METRICS[metric].kind == "failures"
    return arrangement.effect_of_stretches if lost else arrangement.effect


def _outcome(evidence: Evidence, side: Side, metric: str) -> FloatColumn:
    """Return the metric's values of one side, logarithms for ratios; NaN if unknown."""
    kind, none = METRICS[metric].kind, np.full(len(evidence), np.nan)
    if kind == "failures":
        return (~side.answered).astype(np.float64)
    if METRICS[metric].scored:
        return np.where(side.failed, np.nan, side.scores.get(metric, none))
    if kind == "latency":
        return np.log(side.latency_s(metric))
    if kind == "cache":
        return cached_share(side)
    tokens = np.where(side.answered & (side.output_tokens > 0), side.output_tokens, np.nan)
    return np.log(tokens if kind == "tokens" else side.latency_s("e2e") / tokens)


def _client_lag(evidence: Evidence, policy: Policy) -> Iterator[Violation]:
    """Compare the load generator's delay with the median of each metric."""
    limit = policy.validity.client_lag_p99_max_frac
    for side, arm in evidence.arms:
        for metric in LATENCIES:
            errors_s = _lag_in(metric, side)
            seconds = side.latency_s(metric)
            seconds = seconds[np.isfinite(seconds)]
            if not len(errors_s) or not len(seconds):
                continue
            error_s, median_s = float(np.quantile(errors_s, 0.99)), float(np.median(seconds))
            if median_s > 0 and error_s > limit * median_s:
                each = " for each token" if metric == "tpot" else ""
                words = (
                    f"the load generator was up to {error_s * 1e3:.3g} ms{each} late (p99) in "
                    f"sending or reading the {arm}'s requests, over {limit:.1%} of the median of "
                    f"{median_s * 1e3:.3g} ms"
                )
                obstacle = Obstacle(Reason.CLIENT, words)
                yield Violation(obstacle, None, metric, every_scope=True)
                if policy.goodput is not None and metric in policy.goodput.seconds:
                    yield Violation(obstacle, None, "goodput", every_scope=True)


def _lag_in(metric: str, side: Side) -> FloatColumn:
    """Return by how many seconds the load generator's delays can move a metric, by request.

    Time per output token is the time from the first token to the last, over the tokens after the
    first: a late stamp is shared among them.
    """
    after_first = np.fmax(side.output_tokens - 1, 1.0) if metric == "tpot" else 1.0
    moved = np.asarray(side.client_lag_s / after_first, dtype=np.float64)
    return moved[~np.isnan(moved)]
