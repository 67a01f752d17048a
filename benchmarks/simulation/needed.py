"""Whether the number of further pairs that an inconclusive finding asks for is enough to pass."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.simulation import laws
from benchmarks.simulation.dependence import P95, TASKS, Draw, evidence_of, finding, policy_of
from benchmarks.simulation.methods import Rate
from collector.contract import Outcome, Reason
from evals.evidence.columns import Evidence

SIZES = (200, 500, 1_500)
GROUNDED = "{metric: groundedness, stat: mean_diff, min: -0.02, scope: pooled}"
TPOT = "{metric: tpot, stat: geomean_ratio, max: 1.05, scope: pooled}"
FASTER = "{metric: tpot, stat: geomean_ratio, max: 1.00, scope: pooled}"
_TRIES = 40
"""Most rollouts drawn to find each inconclusive one; some cells nearly always pass."""
_MOST = 400_000
_SPREAD = 0.5
"""Standard deviation of a log ratio of times per output token."""


def needed(rollouts: int, seed: int) -> Iterator[Rate]:
    """Yield how often the pairs that inconclusive findings ask for are enough to pass.

    The truth is no change, or half of the margin. If the margin is itself no change, the candidate
    is faster by 1 % to 10 %; effects below .4 standard errors of n pairs have no bound.
    """
    for what, rule, truths, draw in (
        ("task completion, −.02", TASKS, (0.0, -0.01), _tasks),
        ("groundedness, −.02", GROUNDED, (0.0, -0.01), _grounded),
        ("tpot, 1.05", TPOT, (1.0, 1.025), _tpot),
        ("tpot, 1.00", FASTER, (0.9, 0.95, 0.98, 0.99), _tpot),
        ("ttft p95, 1.10", P95, (1.0, 1.05), _ttft),
    ):
        for truth in truths:
            for n in SIZES:
                check = f"pairs that an inconclusive {what} names, truth {truth:g}"
                rng = np.random.default_rng([seed, n, *what.encode()])
                faint = rule is FASTER and -math.log(truth) * math.sqrt(n) < 0.4 * _SPREAD
                size = rollouts, n
                yield from _rates(check, rule, partial(draw, truth), rng, size, bounded=not faint)


def _rates(
    check: str,
    rule: str,
    draw: Draw,
    rng: np.random.Generator,
    size: tuple[int, int],
    *,
    bounded: bool,
) -> Iterator[Rate]:
    rules, (rollouts, n), enough, named = policy_of(rule, 1), size, 0, []
    undecided = 0
    for _ in range(rollouts * _TRIES):
        if undecided == rollouts:
            break
        first = finding(draw(rng, n), rules)
        if first.outcome is not Outcome.INCONCLUSIVE or first.reason is not Reason.TOO_FEW:
            continue
        undecided += 1
        if first.n_needed is None or n + first.n_needed > _MOST:
            continue
        named.append(first.n_needed / n)
        enough += finding(draw(rng, n + first.n_needed), rules).outcome is Outcome.PASS
    if not named:
        return
    # A cell that nearly always passes has too few undecided rollouts for a rate.
    least = 0.75 if bounded and len(named) >= 50 else None
    yield Rate(check, "suffice", n, enough / len(named), len(named), None, least)
    yield Rate(check, "named at all", n, len(named) / undecided, undecided, None, None)
    yield Rate(check, "median, × n", n, float(np.median(named)), len(named), None, None)


def _tasks(truth: float, rng: np.random.Generator, n: int) -> Evidence:
    candidate, baseline = laws.task_pairs(rng, n, truth)
    return evidence_of(n, done=(candidate, baseline))


def _grounded(truth: float, rng: np.random.Generator, n: int) -> Evidence:
    differences = np.clip(rng.normal(truth, 0.25, n), -0.5, 0.5)
    return evidence_of(n, grounded=(0.5 + differences, np.full(n, 0.5)))


def _tpot(truth: float, rng: np.random.Generator, n: int) -> Evidence:
    return evidence_of(n, tpot_s=(truth * np.exp(rng.normal(0, _SPREAD, n)), np.ones(n)))


def _ttft(truth: float, rng: np.random.Generator, n: int) -> Evidence:
    candidate, baseline = laws.latencies(rng, n, truth)
    return evidence_of(n, ttft_s=(candidate, baseline))
