"""The candidate's measured speed-up, from pairs."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from evals.advice.observations import Observation
from evals.advice.records import Estimate
from evals.stats import Insufficient
from evals.stats.log_ratio import geometric_mean_ratio


def e2e_ratios(pairs: Sequence[Observation]) -> list[tuple[str, float]]:
    """Return (prompt, log(baseline/candidate)) of each pair's end-to-end duration."""
    return [
        (p.prompt, math.log(p.baseline.e2e_s / p.candidate.e2e_s))
        for p in pairs
        if p.baseline is not None and p.candidate is not None
    ]


def tpot_ratios(pairs: Sequence[Observation]) -> list[tuple[str, float]]:
    """Return (prompt, log(baseline/candidate)) of each pair's time per output token."""
    return [
        (p.prompt, math.log(p.baseline.tpot_s / p.candidate.tpot_s))
        for p in pairs
        if p.baseline is not None and p.candidate is not None
        if p.baseline.tpot_s and p.candidate.tpot_s
        if p.baseline.tpot_s > 0 and p.candidate.tpot_s > 0
    ]


def prompts(ratios: Sequence[tuple[str, float]]) -> int:
    """Count the distinct prompts."""
    return len({prompt for prompt, _ in ratios})


def speedup(ratios: Sequence[tuple[str, float]], confidence: float = 0.95) -> Estimate | None:
    """Return the geometric mean of baseline/candidate, repeats of a prompt averaged first.

    One-sided limits by Student's t on the logarithms; above 1 is faster. `None` if the ratios do
    not vary or are too few.
    """
    by_prompt: dict[str, list[float]] = defaultdict(list)
    for prompt, log_ratio in ratios:
        by_prompt[prompt].append(log_ratio)
    means = np.array([np.mean(logs) for logs in by_prompt.values()], dtype=np.float64)
    found = geometric_mean_ratio(means, margin=1.0, bound="min", confidence=confidence)
    if isinstance(found, Insufficient) or found.estimate is None:
        return None
    return Estimate(estimate=found.estimate, lower=found.lower, upper=found.upper)
