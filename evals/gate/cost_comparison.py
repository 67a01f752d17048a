"""The cost of a million output tokens on each arm, and the part of rejected drafts in it."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from collector.contract import CostComparison
from evals.evidence.columns import BoolColumn, Evidence, FloatColumn, Side
from evals.gate.answer_costs import AnswerCosts, answer_costs
from evals.gate.arrangement import Arrangement, of_arm, of_pairs
from evals.gate.cells import MIN_SUMS_N
from evals.gate.clusters import clusters
from evals.gate.measured import MAX_UNBOUNDED_SHARE
from evals.policy import Policy
from evals.stats.significant import significant
from evals.stats.smooth_function import Limits, OfMeans, limits, linear, over_groups

_MILLION = 1e6


def cost_comparisons(evidence: Evidence, policy: Policy) -> tuple[CostComparison, ...]:
    """Return the comparison of all pairs, then of each cohort; none if no answer has a price.

    If the run declared looks, at any of which it may have ended, each has an equal share of the
    limits' level.
    """
    costs = answer_costs(evidence, policy)
    if costs is None:
        return ()
    looks = 1 if evidence.looks is None else max(1, evidence.looks.count)
    at_a_look = replace(policy, alpha_pass=policy.alpha_pass / looks)
    found = (_comparison(evidence, costs, at_a_look, c) for c in (None, *evidence.all_cohorts))
    return tuple(replace(one, confidence=1 - policy.alpha_pass) for one in found)


class _CostedAnswers(NamedTuple):
    """The answers of one scope whose cost is known."""

    baseline: BoolColumn
    candidate: BoolColumn
    left_out: int
    """Answered pairs, or answers, whose cost is unknown."""

    @property
    def n(self) -> int:
        return int(min(self.baseline.sum(), self.candidate.sum()))


class _Estimate(NamedTuple):
    value: float | None = None
    limits: Limits | None = None
    notes: tuple[str, ...] = ()


def _comparison(
    evidence: Evidence, costs: AnswerCosts, policy: Policy, cohort: str | None
) -> CostComparison:
    rows = _rows(evidence, costs, evidence.scope(cohort), paired=policy.paired)
    notes = _notes(costs, rows)
    known = not notes
    difference, rejected = _Estimate(), _Estimate()
    if known:
        difference = _difference(evidence, costs, rows, policy)
        rejected = _rejected_drafts(evidence, costs, rows, policy)
    arms = ((evidence.baseline, costs.baseline, rows.baseline),
            (evidence.candidate, costs.candidate, rows.candidate))  # fmt: skip
    baseline, candidate = (_rate(*arm) if known else None for arm in arms)
    return CostComparison(
        cohort=cohort,
        currency=costs.currency,
        n=rows.n,
        left_out=rows.left_out,
        in_flight=significant(costs.in_flight),
        confidence=1 - policy.alpha_pass,
        baseline=significant(baseline),
        candidate=significant(candidate),
        difference=significant(difference.value),
        lower=_end(difference, lower=True),
        upper=_end(difference, lower=False),
        rejected_drafts=significant(rejected.value),
        rejected_drafts_lower=_end(rejected, lower=True),
        rejected_drafts_upper=_end(rejected, lower=False),
        notes=(*notes, *difference.notes, *rejected.notes),
    )


def _end(estimate: _Estimate, *, lower: bool) -> float | None:
    if estimate.limits is None:
        return None
    return significant(estimate.limits.lower if lower else estimate.limits.upper)


def _rows(
    evidence: Evidence, costs: AnswerCosts, scope: BoolColumn, *, paired: bool
) -> _CostedAnswers:
    answered = [scope & side.answered for side in (evidence.baseline, evidence.candidate)]
    known = [~np.isnan(costs.baseline), ~np.isnan(costs.candidate)]
    if paired:
        both = answered[0] & answered[1]
        rows = both & known[0] & known[1]
        return _CostedAnswers(rows, rows, int((both & ~rows).sum()))
    baseline, candidate = (one & has for one, has in zip(answered, known, strict=True))
    left_out = sum(int((one & ~has).sum()) for one, has in zip(answered, known, strict=True))
    return _CostedAnswers(baseline, candidate, left_out)


def _notes(costs: AnswerCosts, rows: _CostedAnswers) -> tuple[str, ...]:
    """Return why no figure is known."""
    if costs.unknown is not None:
        return (costs.unknown,)
    every = rows.n + rows.left_out
    if rows.n == 0 or rows.left_out > MAX_UNBOUNDED_SHARE * every:
        lacking = "a price, a count of tokens or a usable time"
        return (f"{rows.left_out} of {every} answered pairs lack {lacking}",)
    return ()


def _rate(side: Side, costs: FloatColumn, rows: BoolColumn) -> float:
    return float(costs[rows].sum() / side.output_tokens[rows].sum()) * _MILLION


def _difference(
    evidence: Evidence, costs: AnswerCosts, rows: _CostedAnswers, policy: Policy
) -> _Estimate:
    """Return candidate − baseline, per million output tokens."""
    timed = costs.in_flight is not None
    candidate = (costs.candidate, evidence.candidate.output_tokens)
    baseline = (costs.baseline, evidence.baseline.output_tokens)
    if policy.paired:
        pairs = of_pairs(evidence, rows.candidate, policy, timed=timed)
        samples = [x[rows.candidate] for x in (*candidate, *baseline)]
        found = _estimated(lambda m: (m[0] / m[1] - m[2] / m[3]) * _MILLION, samples, pairs, policy)
    else:
        found = _between_arms(evidence, (candidate, baseline), rows, policy)
    prompts = min(clusters(evidence, rows.baseline), clusters(evidence, rows.candidate))
    if prompts < MIN_SUMS_N:
        return _Estimate(found.value, None, (f"limits need {MIN_SUMS_N} prompts",))
    return found


def _between_arms(
    evidence: Evidence,
    arms: tuple[tuple[FloatColumn, FloatColumn], tuple[FloatColumn, FloatColumn]],
    rows: _CostedAnswers,
    policy: Policy,
) -> _Estimate:
    """Return the difference of arms that answered different requests: their variances add."""
    sides = (evidence.candidate, rows.candidate), (evidence.baseline, rows.baseline)
    found, parts = [], []
    for (side, chosen), samples in zip(sides, arms, strict=True):
        one = linear(lambda m: m[0] / m[1] * _MILLION, [x[chosen] for x in samples])
        arranged = of_arm(evidence, side, chosen, policy)
        found.append(one.value)
        parts.append((one.pulls, arranged.effect(one.pulls)))
    value = float(found[0] - found[1])
    return _Estimate(value, limits(value, parts, 1 - policy.alpha_pass))


def _estimated(
    statistic: OfMeans, samples: list[FloatColumn], pairs: Arrangement, policy: Policy
) -> _Estimate:
    """Return a statistic of pairs, whose limits hold over launches too if there are enough."""
    confidence = 1 - policy.alpha_pass
    found = linear(statistic, samples)
    reach = limits(found.value, [(found.pulls, pairs.effect(found.pulls))], confidence)
    if pairs.launches is None or reach is None:
        return _Estimate(found.value, reach)
    groups = [pairs.launches == number for number in np.unique(pairs.launches)]
    each = [statistic(np.array([x[group].mean() for x in samples])) for group in groups]
    between = over_groups(np.array(each), confidence)
    return _Estimate(found.value, None if between is None else reach.outer(between))


def _rejected_drafts(
    evidence: Evidence, costs: AnswerCosts, rows: _CostedAnswers, policy: Policy
) -> _Estimate:
    """Return what drafts that were rejected cost, per million output tokens of the candidate.

    (t − p·b)·(1 − accepted/drafted)·price of a second ÷ requests in flight, per token: t is the
    candidate's time from its first token on, p its passes (output tokens after the first, less
    those accepted), b the baseline's time per output token. So it is the time by which the passes
    outlast as many of the baseline, for the share of drafts that was rejected.
    """
    baseline, candidate = evidence.baseline, evidence.candidate
    if costs.in_flight is None or not policy.paired:
        return _Estimate()
    timed = rows.candidate & (candidate.output_tokens > 1) & (baseline.output_tokens > 1)
    counted = candidate.counts_usable & (candidate.draft_tokens >= 0)
    times = ~np.isnan(baseline.latency_s("tpot")) & ~np.isnan(candidate.latency_s("tpot"))
    used = timed & counted & (candidate.accepted_tokens >= 0) & times
    if not (candidate.draft_tokens[used] > 0).any():
        return _Estimate()
    unknown = _plain_steps_unknown(baseline, timed, used)
    if unknown is not None:
        return _Estimate(notes=(unknown,))
    price = costs.candidate[used].sum() / candidate.seconds["e2e"][used].sum() * _MILLION

    def spent(m: FloatColumn) -> float:
        seconds, passes, accepted, drafted, tokens, plain_s, plain = m
        return float(
            (seconds - passes * plain_s / plain) * (1 - accepted / drafted) / tokens * price
        )

    pairs = of_pairs(evidence, used, policy, timed=True)
    found = _estimated(spent, _draft_samples(baseline, candidate, used), pairs, policy)
    if found.value is None or found.value <= 0:
        note = "the candidate's passes took no longer than the baseline's: rejected drafts cost "
        return _Estimate(notes=(f"{note}no time that can be measured",))
    enough = clusters(evidence, used) >= MIN_SUMS_N
    return found if enough else _Estimate(found.value)


def _plain_steps_unknown(baseline: Side, timed: BoolColumn, used: BoolColumn) -> str | None:
    """Return why the time of a pass without drafts, or the count of passes, is unknown."""
    if (baseline.speculated & timed).any():
        return "the baseline drafts too: what its passes would take without drafts is not known"
    missing, every = int((timed & ~used).sum()), int(timed.sum())
    if missing > MAX_UNBOUNDED_SHARE * every:
        return f"rejected drafts: {missing} of {every} answers lack usable counts, or times"
    return None


def _draft_samples(baseline: Side, candidate: Side, used: BoolColumn) -> list[FloatColumn]:
    later = candidate.output_tokens[used] - 1
    accepted = candidate.accepted_tokens[used].astype(np.float64)
    plain = baseline.output_tokens[used] - 1
    return [
        candidate.seconds["tpot"][used] * later,
        np.maximum(later - accepted, np.maximum(candidate.steps[used], 0)),
        accepted,
        candidate.draft_tokens[used].astype(np.float64),
        candidate.output_tokens[used],
        baseline.seconds["tpot"][used] * plain,
        plain,
    ]
