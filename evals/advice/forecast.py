"""Forecast the speed of each k: tokens a step divided by the measured cost of a step."""

from typing import NamedTuple

import numpy as np

from evals.advice.records import Estimate, KForecast
from evals.advice.step_cost import StepCost, split
from evals.advice.sums import Sums
from evals.advice.survival import Survival, survival
from evals.evidence.columns import FloatColumn

DRAWS = 1000
SEED = 20_240_601
CONFIDENCE = 0.95


class StepModel(NamedTuple):
    """Acceptance and cost of one set of sums."""

    survival: Survival
    cost: StepCost | None
    baseline_step_s: float
    now_step_s: float
    """Seconds of a step at the k served now."""

    def step_s(self, k: int, now: int) -> float | None:
        """Return a step's seconds: by the fit if there is one, else as measured at `now`."""
        if k == 0:
            return self.baseline_step_s
        if self.cost is not None:
            return self.cost.step_s(k)
        return self.now_step_s if k == now else None

    def speedup(self, k: int, now: int) -> float | None:
        """Return the speed-up over the baseline for each token after the first."""
        step_s = self.step_s(k, now)
        if step_s is None or step_s <= 0:
            return None
        return self.survival.tokens_a_step(k) * self.baseline_step_s / step_s


def model(sums: Sums, now: int) -> StepModel | None:
    """Return the model of summed counts and times; `None` if k = `now` has no steps or no time."""
    acceptance = survival(sums.steps, sums.accepted_per_pos)
    at = now - 1
    enough = min(sums.decode_steps[at], sums.decode_s[at], sums.baseline_decode_s[at])
    if acceptance is None or enough <= 0:
        return None
    baseline_s = sums.baseline_step_s
    # Rollouts of other k may have run on a slower machine or hour: scale by their own baseline.
    scaled_s = sums.step_s * baseline_s[at] / baseline_s
    return StepModel(
        survival=acceptance,
        cost=split(np.where(scaled_s > 0, sums.decode_steps, 0), scaled_s),
        baseline_step_s=float(baseline_s[at]),
        now_step_s=float(sums.step_s[at]),
    )


def forecasts(sums: Sums, now: int) -> tuple[KForecast, ...]:
    """Return the forecasts of each k from 0 to twice the longest that was logged.

    Limits are one-sided 95 % each, percentiles of a bootstrap over prompts. There are no limits if
    fewer than 95 % of the bootstrap samples give a model of the same kind.
    """
    found = model(sums.total(), now)
    if found is None:
        return ()
    ks = range(2 * sums.steps.shape[1] + 1)
    draws = [model(sample, now) for sample in sums.resampled(DRAWS, SEED)]
    known = [m for m in draws if m is not None and (m.cost is None) == (found.cost is None)]
    if len(known) < CONFIDENCE * DRAWS:
        known = []
    logged = len(found.survival.probabilities)
    return tuple(
        KForecast(
            k=k,
            extrapolated=k > logged,
            tokens_a_step=_limits(
                found.survival.tokens_a_step(k), [m.survival.tokens_a_step(k) for m in known]
            ),
            step_s=found.step_s(k, now),
            tpot_speedup=_limits(found.speedup(k, now), [m.speedup(k, now) for m in known]),
            gain=_limits(_gain(found, k, now), [_gain(m, k, now) for m in known]),
        )
        for k in ks
    )


def _gain(m: StepModel, k: int, now: int) -> float | None:
    there, here = m.speedup(k, now), m.speedup(now, now)
    return None if there is None or here is None else there / here - 1


def _limits(estimate: float | None, draws: list[float | None] | list[float]) -> Estimate | None:
    if estimate is None:
        return None
    values: FloatColumn = np.array([v for v in draws if v is not None], dtype=np.float64)
    if not len(values):
        return Estimate(estimate=estimate)
    lower, upper = np.quantile(values, (1 - CONFIDENCE, CONFIDENCE))
    return Estimate(estimate=estimate, lower=float(lower), upper=float(upper))
