"""Error rates of cells of goodput: the candidate's share of good requests is at the margin.

A request is good if its time to first token is within a bound that nine tenths of the baseline's
keep. Of dependent requests, neighbours in time are slow together, in each arm by itself. Launches
are fast or 27 % slower, two of seven fast, drawn for each arm.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from benchmarks.simulation import laws
from benchmarks.simulation.dependence import evidence_of
from benchmarks.simulation.launches import A_LAUNCH, FAST, SLOWER
from benchmarks.simulation.methods import Rate
from collector.contract import Outcome
from evals import policy as policies
from evals.evidence.columns import Evidence
from evals.gate.cells import plan
from evals.gate.judging import family_p, finding_of
from evals.gate.measurement import measure
from evals.gate.warmup import prepared
from evals.policy import Policy

BASE = 0.9
SIZES = (200, 1_000)
_CALIBRATION = 2_000_000
_MEMORY = 0.9
"""Correlation of the logarithms of successive times of dependent requests."""


class Law(NamedTuple):
    """A law of both arms' seconds, for a ratio of the candidate's to the baseline's."""

    name: str
    draw: Callable[[np.random.Generator, int, float], laws.Latencies]
    split: bool = False
    launched: bool = False


def goodput(rollouts: int, seed: int) -> Iterator[Rate]:
    """Yield pass and fail rates at the margin and without a change."""
    for law in LAWS:
        margin = 0.05 if law.launched else 0.02
        sizes = [A_LAUNCH * n for n in (3, 5, 10)] if law.launched else SIZES
        for n in sizes:
            for truth in (-margin, 0.0):
                yield from _rates(law, n, (margin, truth), rollouts, seed)


def _outcome(evidence: Evidence, policy: Policy) -> Outcome:
    """Return the outcome of the only cell, whose evidence is valid by construction."""
    ready = prepared(evidence, policy)
    (cell,) = plan(ready, policy)
    found = measure(cell, ready, policy)
    return finding_of(cell, found, family_p(found), policy, 1).outcome


def _rates(law: Law, n: int, at: tuple[float, float], rollouts: int, seed: int) -> Iterator[Rate]:
    margin, truth = at
    bound_s, ratio = _calibrated(law, truth)
    policy = _policy(bound_s, margin, split=law.split)
    rng = np.random.default_rng([seed, 81, n, round(-1000 * truth), len(law.name)])
    counts = dict.fromkeys(Outcome, 0)
    for _ in range(rollouts):
        counts[_outcome(_evidence(rng, law, n, ratio), policy)] += 1
    check = f"goodput ≥ −{margin:.2f}, truth {truth:.2f}, {law.name}"
    for outcome in (Outcome.PASS, Outcome.FAIL):
        enough = law.draw is not _dependent or n > SIZES[0]  # 200 such pairs are some ten stretches
        bounded = enough and (truth < 0 or outcome is Outcome.FAIL)
        yield Rate(check, outcome.value, n, counts[outcome] / rollouts, rollouts,
                   0.06 if bounded else None)  # fmt: skip


@cache
def _calibrated(law: Law, truth: float) -> tuple[float, float]:
    """Return the bound, and the ratio at which the candidate's share is BASE + truth."""
    rng = np.random.default_rng(7)
    # Both arms have one law: quantiles of one sample have nearly one error, which the ratio lacks.
    times_s = np.concatenate(law.draw(rng, _CALIBRATION, 1.0))
    bound_s, wanted_s = np.quantile(times_s, (BASE, BASE + truth))
    return float(bound_s), float(bound_s / wanted_s)


def _policy(bound_s: float, margin: float, *, split: bool) -> Policy:
    design = "split" if split else "paired_replay"
    text = f"""
version: 1
name: simulated
design: {design}
goodput: {{ttft_ms: {1000 * bound_s}}}
prove:
  - {{metric: goodput, stat: diff, min: {-margin}, scope: pooled}}
"""
    return policies.parse(text, "simulated.yaml")


def _evidence(rng: np.random.Generator, law: Law, n: int, ratio: float) -> Evidence:
    times = law.draw(rng, n, ratio)
    found = evidence_of(n, ttft_s=(times.candidate, times.baseline))
    sides = found.candidate, found.baseline
    if law.split:
        chosen = rng.permutation(n) < n / 2
        sides = replace(sides[0], present=chosen), replace(sides[1], present=~chosen)
    if law.launched:
        names = (np.arange(n) // A_LAUNCH).astype(str).astype(np.object_)
        candidate, baseline = (replace(side, recorded={"launch": names}) for side in sides)
        sides = candidate, baseline
    made = replace(found, candidate=sides[0], baseline=sides[1])
    return made.with_launches() if law.launched else made


def _dependent(rng: np.random.Generator, n: int, ratio: float) -> laws.Latencies:
    """Return lognormal times whose logarithms follow a first-order autoregression in each arm."""

    def arm() -> laws.Floats:
        steps = rng.normal(0, 0.5 * np.sqrt(1 - _MEMORY**2), n)
        steps[0] = rng.normal(0, 0.5)
        return np.asarray(np.exp(lfilter([1.0], [1.0, -_MEMORY], steps)))

    return laws.Latencies(arm() * ratio, arm())


def _launched(rng: np.random.Generator, n: int, ratio: float) -> laws.Latencies:
    """Return times in launches of `A_LAUNCH` pairs, each arm's fast or slow at random."""
    times, launch = laws.latencies(rng, n, ratio), np.arange(n) // A_LAUNCH
    modes = np.where(rng.random((2, int(launch.max()) + 1)) < FAST, 1.0, SLOWER)
    return laws.Latencies(times.candidate * modes[0][launch], times.baseline * modes[1][launch])


LAWS = (
    Law("pairs", laws.latencies),
    Law("pairs that depend on each other", _dependent),
    Law("split traffic", laws.latencies, split=True),
    Law("launches", _launched, launched=True),
    Law("launches of split traffic", _launched, split=True, launched=True),
)
