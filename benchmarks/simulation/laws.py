"""Probability laws of simulated rollouts."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Latencies(NamedTuple):
    """Seconds of both arms, pair by pair."""

    candidate: Floats
    baseline: Floats


def latencies(rng: np.random.Generator, n: int, ratio: float = 1.0) -> Latencies:
    """Return lognormal latencies that share half of their variance, with 2 % spikes in each arm.

    Spikes are independent between the arms and multiply by 4 to 7, so that p99 lies among them. On
    this scale 8,100 pairs without a change have a power of .8 for a p99 ratio of at most 1.25.
    """
    shared = rng.normal(0, 0.3, n)

    def arm() -> Floats:
        spikes = np.where(rng.random(n) < 0.02, np.log(rng.uniform(4, 7, n)), 0.0)
        return np.asarray(np.exp(shared + rng.normal(0, 0.3, n) + spikes))

    return Latencies(arm() * ratio, arm())


class Shares(NamedTuple):
    """Shares of pairs in which only the candidate (gained) or only the baseline (lost) succeeds."""

    gained: float
    lost: float


def task_shares(difference: float, base: float = 0.85, phi: float = 0.8) -> Shares:
    """Return the shares for a 0/1 outcome; `phi` is the correlation of the two sides."""
    cand = base + difference
    both = base * cand + phi * math.sqrt(base * (1 - base) * cand * (1 - cand))
    return Shares(cand - both, base - both)


def task_pairs(
    rng: np.random.Generator, n: int, difference: float, base: float = 0.85
) -> tuple[Bools, Bools]:
    """Return (candidate, baseline) successes, pair by pair."""
    shares = task_shares(difference, base)
    u = rng.random(n)
    both = base - shares.lost
    baseline = u < base
    candidate = (u < both) | ((u >= base) & (u < base + shares.gained))
    return candidate, baseline


def grounded_differences(rng: np.random.Generator, n: int, difference: float) -> Floats:
    """Return differences of scores: a share drops by .69 (2.9 % for −.02), and all have noise."""
    collapse = np.where(rng.random(n) < -difference / 0.69, -0.69, 0.0)
    return np.clip(collapse + rng.normal(0, 0.05, n), -1, 1)
