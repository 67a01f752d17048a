"""The numbers behind the advice on one scope."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from evals.advice.forecast import StepModel, forecasts, model
from evals.advice.observations import Observation
from evals.advice.observed import e2e_ratios, prompts, speedup, tpot_ratios
from evals.advice.records import Cost, Estimate, Gap, KForecast, Trial, Wasted
from evals.advice.summing import Modelled, modelled, sums_of


class AdviceScope(NamedTuple):
    """A cohort or band of input tokens (`None`: all pairs), optionally at one load."""

    cohort: str | None
    load: tuple[int, int] | None = None

    def of(self, pairs: Sequence[Observation]) -> list[Observation]:
        """Return the scope's pairs."""
        return [
            p
            for p in pairs
            if self.cohort in (None, p.cohort, p.band)
            and (self.load is None or p.load == self.load)
        ]


class Numbers(NamedTuple):
    """The measurements of a scope; `now` and all fields after it need verify steps by position."""

    pairs: int
    timed: int
    """Pairs with both durations."""
    prompts: int
    e2e: Estimate | None
    tpot: Estimate | None
    wasted: Wasted | None
    now: int | None = None
    """The k served now."""
    steps: int = 0
    modelled_prompts: int = 0
    model: StepModel | None = None
    by_k: tuple[KForecast, ...] = ()
    predicted_e2e: float | None = None


def numbers(pairs: Sequence[Observation], others: Sequence[Observation]) -> Numbers:
    """Return the measurements of a scope's pairs; the model uses other rollouts' pairs too."""
    ratios, tpots = e2e_ratios(pairs), tpot_ratios(pairs)
    own = modelled(pairs)
    seen = Numbers(len(pairs), len(ratios), prompts(ratios), speedup(ratios), speedup(tpots), None)
    if not own:
        return seen._replace(wasted=_wasted(pairs))
    steps_by_k: Counter[int] = Counter()
    for p in own:
        steps_by_k[p.k] += p.counts.steps
    now = max(steps_by_k, key=lambda k: (steps_by_k[k], k))
    sums = sums_of([*own, *modelled(others)])
    found = model(sums.total(), now)
    return seen._replace(
        now=now,
        steps=sum(steps_by_k.values()),
        modelled_prompts=len({p.prompt for p in own}),
        model=found,
        by_k=forecasts(sums, now),
        predicted_e2e=_e2e(own, found, now),
        wasted=_wasted(pairs),
    )


def cost(n: Numbers) -> Cost | None:
    """Return the measured seconds of a step."""
    if n.model is None:
        return None
    split = n.model.cost
    return Cost(
        baseline_step_s=n.model.baseline_step_s,
        step_s=n.model.now_step_s,
        verify_s=split.verify_s if split else None,
        draft_s=split.draft_s if split else None,
    )


def break_even(n: Numbers) -> float | None:
    """Return the tokens a step at which candidate and baseline are equally fast."""
    return None if n.model is None else n.model.now_step_s / n.model.baseline_step_s


def gap(n: Numbers) -> Gap | None:
    """Split the ratio of k + 1 to the observed speed-up of a token into factors."""
    if n.model is None or n.now is None or n.tpot is None:
        return None
    acceptance = (n.now + 1) / n.model.survival.tokens_a_step(n.now)
    step = n.model.now_step_s / n.model.baseline_step_s
    rest = (n.now + 1) / acceptance / step / n.tpot.estimate
    side = "acceptance" if acceptance >= step else "cost"
    return Gap(acceptance=acceptance, cost=step, rest=rest, side=side)


def trial(n: Numbers) -> Trial | None:
    """Return the shorter k with the largest possible gain, if the cost of a step cannot be split.

    The gain is an upper limit: the target's pass over several tokens costs at least a baseline
    step, so the rest of a step's time is an upper limit for drafting.
    """
    if n.model is None or n.now is None or n.model.cost is not None:
        return None
    base_s, step_s, survive = n.model.baseline_step_s, n.model.now_step_s, n.model.survival
    draft_s = (step_s - base_s) / n.now
    if draft_s <= 0:
        return None
    here = survive.tokens_a_step(n.now) / step_s
    gains = [
        Trial(k=k, gain_at_most=survive.tokens_a_step(k) / (base_s + k * draft_s) / here - 1)
        for k in range(1, n.now)
    ]
    return max(gains, key=lambda t: t.gain_at_most, default=None)


def _e2e(own: Sequence[Modelled], found: StepModel | None, now: int) -> float | None:
    """Return the predicted end-to-end speed-up; the time to first token stays as it is."""
    factor = None if found is None else found.speedup(now, now)
    if not factor:
        return None
    logs = [
        math.log(p.baseline.e2e_s / (p.baseline.e2e_s - p.baseline_decode_s * (1 - 1 / factor)))
        for p in own
    ]
    return math.exp(sum(logs) / len(logs))


def _wasted(pairs: Sequence[Observation]) -> Wasted | None:
    counts = [p.counts for p in pairs if p.counts is not None]
    if not counts:
        return None
    drafts = sum(c.draft_tokens for c in counts)
    wasted = drafts - sum(c.accepted_tokens for c in counts)
    share = wasted / drafts if drafts else None
    return Wasted(draft_tokens=drafts, wasted_tokens=wasted, share=share)
