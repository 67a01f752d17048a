"""The candidate's measured speed-up, from pairs."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evals.advice.observations import Observation
from evals.advice.records import Estimate
from evals.evidence.launches import ENOUGH
from evals.stats import Insufficient
from evals.stats.interval import outer_limit
from evals.stats.launch_ratio import over_launches
from evals.stats.log_ratio import geometric_mean_ratio


class TimeRatio(NamedTuple):
    """A pair's baseline/candidate ratio of a time."""

    prompt: str
    log: float
    """Natural logarithm; above 0 the candidate is faster."""
    launch: int | None


def e2e_ratios(pairs: Sequence[Observation]) -> list[TimeRatio]:
    """Return the ratio of each pair's end-to-end durations."""
    return [
        TimeRatio(p.prompt, math.log(p.baseline.e2e_s / p.candidate.e2e_s), p.launch)
        for p in pairs
        if p.baseline is not None and p.candidate is not None
    ]


def tpot_ratios(pairs: Sequence[Observation]) -> list[TimeRatio]:
    """Return the ratio of each pair's times per output token."""
    return [
        TimeRatio(p.prompt, math.log(p.baseline.tpot_s / p.candidate.tpot_s), p.launch)
        for p in pairs
        if p.baseline is not None and p.candidate is not None
        if p.baseline.tpot_s and p.candidate.tpot_s
        if p.baseline.tpot_s > 0 and p.candidate.tpot_s > 0
    ]


def prompts(ratios: Sequence[TimeRatio]) -> int:
    """Count the distinct prompts."""
    return len({ratio.prompt for ratio in ratios})


def speedup(ratios: Sequence[TimeRatio], confidence: float = 0.95) -> Estimate | None:
    """Return the geometric mean of baseline/candidate, repeats of a prompt averaged first.

    One-sided limits by Student's t on the logarithms, over prompts and, if the rollout has launches
    enough, over launches: the wider ones. Above 1 is faster. `None` if the ratios do not vary, or
    are of too few prompts or launches.
    """
    found = geometric_mean_ratio(
        _of_prompts(ratios), margin=1.0, bound="min", confidence=confidence
    )
    if isinstance(found, Insufficient) or found.estimate is None:
        return None
    limits = Estimate(estimate=found.estimate, lower=found.lower, upper=found.upper)
    if any(ratio.launch is None for ratio in ratios):
        return limits
    return _over_launches(ratios, limits, confidence)


def _over_launches(
    ratios: Sequence[TimeRatio], limits: Estimate, confidence: float
) -> Estimate | None:
    by_launch: dict[int | None, list[TimeRatio]] = defaultdict(list)
    for ratio in ratios:
        by_launch[ratio.launch].append(ratio)
    if len(by_launch) < ENOUGH:
        return None
    logs = np.array([_of_prompts(of).mean() for of in by_launch.values()], dtype=np.float64)
    found = over_launches(logs, margin=1.0, bound="min", confidence=confidence)
    if isinstance(found, Insufficient):
        return limits
    return Estimate(
        estimate=limits.estimate,
        lower=outer_limit(min, limits.lower, found.lower),
        upper=outer_limit(max, limits.upper, found.upper),
    )


def _of_prompts(ratios: Iterable[TimeRatio]) -> NDArray[np.float64]:
    """Return each prompt's mean logarithm."""
    by_prompt: dict[str, list[float]] = defaultdict(list)
    for ratio in ratios:
        by_prompt[ratio.prompt].append(ratio.log)
    return np.array([np.mean(logs) for logs in by_prompt.values()], dtype=np.float64)
