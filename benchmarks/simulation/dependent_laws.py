"""Probability laws of dependent requests: time series, bursts, outages, shared caches."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from benchmarks.simulation import laws
from benchmarks.simulation.laws import Bools, Floats, Latencies

Integers = NDArray[np.int64]


def autoregressive(rng: np.random.Generator, n: int, phi: float) -> Floats:
    """Return a stationary series of unit variance whose neighbours correlate by `phi`."""
    noise = rng.normal(size=n + 1000)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise)[1000:] * math.sqrt(1 - phi**2))


def drifting_ratios(rng: np.random.Generator, n: int, phi: float, ratio: float = 1.0) -> Latencies:
    """Return times per token whose log ratio is autoregressive, with mean log(ratio)."""
    shared = np.exp(rng.normal(-4, 0.3, n))
    return Latencies(shared * ratio * np.exp(0.3 * autoregressive(rng, n, phi)), shared)


def slow_waves(rng: np.random.Generator, n: int, phi: float, ratio: float = 1.0) -> Latencies:
    """Return latencies that are autoregressive, independently in each arm."""

    def arm() -> Floats:
        return np.asarray(np.exp(0.4 * autoregressive(rng, n, phi)))

    return Latencies(arm() * ratio, arm())


def stretches(rng: np.random.Generator, n: int, length: int, share: float) -> Bools:
    """Return a mask of stretches of about `length`, which start at random and may overlap.

    They cover `share` of the pairs on average.
    """
    lead = 4 * length
    reached = np.zeros(n + lead, dtype=np.bool_)
    count = rng.poisson(-math.log(1 - share) * (n + lead) / length)
    for start in rng.integers(0, n + lead, count):
        reached[start : start + max(1, rng.poisson(length))] = True
    return reached[lead:]


def slow_bursts(rng: np.random.Generator, n: int, length: int, ratio: float = 1.0) -> Latencies:
    """Return latencies with slow bursts that cover 6 % of them, independently in each arm."""

    def arm() -> Floats:
        slow = stretches(rng, n, length, 0.06)
        return np.asarray(np.exp(rng.normal(0, 0.2, n) + slow))

    return Latencies(arm() * ratio, arm())


def lost_tasks(rng: np.random.Generator, n: int, length: int, loss: float) -> tuple[Bools, Bools]:
    """Return (candidate, baseline) successes; the candidate loses every task within stretches."""
    base = 0.85
    candidate, baseline = laws.task_pairs(rng, n, 0.0, base)
    if loss:
        candidate = candidate & ~stretches(rng, n, length, loss / base)
    return candidate, baseline


def slow_prompts(rng: np.random.Generator, n: int) -> Latencies:
    """Return equal arms in which 5 % of requests are slow, correlated by .8 between the arms.

    So it is if both arms mostly share the state of a cache.
    """
    share, correlation = 0.05, 0.8
    both = share**2 + correlation * share * (1 - share)
    u = rng.random(n)
    candidate = u < share
    baseline = (u < both) | ((u >= share) & (u < 2 * share - both))

    def arm(slow: Bools) -> Floats:
        return np.asarray(np.exp(rng.normal(0, 0.2, n) + np.where(slow, math.log(8), 0.0)))

    return Latencies(arm(candidate), arm(baseline))


def two_modes(rng: np.random.Generator, n: int) -> Latencies:
    """Return equal arms whose p95 lies between two modes: 5 % slow, independently in each arm."""

    def arm() -> Floats:
        slow = rng.random(n) < 0.05
        return np.asarray(np.exp(rng.normal(0, 0.1, n) + np.where(slow, math.log(4), 0.0)))

    return Latencies(arm(), arm())


def sessions(rng: np.random.Generator, sessions: int, turns: float) -> Integers:
    """Return each turn's session in order of time; about eight sessions run side by side.

    A session has two turns at least, and a geometric number of them with this mean.
    """
    lengths = 1 + rng.geometric(1 / (turns - 1), sessions)
    session = np.repeat(np.arange(sessions), lengths)
    turn = np.arange(len(session)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = rng.uniform(0, sessions, sessions)[session] + 8 * turn / turns
    return np.asarray(session[np.argsort(at, kind="stable")])
