"""How often any candidate of a family errs, with one baseline shared by all of them."""

from collections.abc import Iterator

import numpy as np

from benchmarks.simulation import laws
from benchmarks.simulation.methods import Rate
from benchmarks.simulation.release import side_of
from collector.contract import Family, Outcome
from evals import policy
from evals.evidence.columns import Evidence
from evals.gate.release import judge_cells, release_outcome

ARMS = ("k2", "k4", "k8", "ngram")
MARGIN = -0.02
SPREAD = 0.3
"""Standard deviation of the log of a time, of which half the variance is the prompt's."""
POLICY = """
version: 1
name: simulated
cohorts: {min_n: 150}
prove:
  - {metric: %s, scope: pooled}
"""
RULES = {
    "task completion ≥ −.02": "task_completion, stat: diff, min: -0.02",
    "ttft geometric mean ≤ 1.05": "ttft, stat: geomean_ratio, max: 1.05",
}
_AT_MARGIN = {"task_completion": MARGIN, "ttft": 1.05}
_EQUAL = {"task_completion": 0.0, "ttft": 1.0}
_PAIRS = 1000
_SIZES = (1000, 1500, 2000)


def families(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge four candidates at the margin, as a family and each for itself, then equal ones."""
    for words, rule in RULES.items():
        for name, rules, bound in _judges(rule):
            passed, failed, _ = _shares(rules, _PAIRS, rollouts, seed, _AT_MARGIN)
            check = f"{words}, at the margin, {name}"
            yield Rate(check, "any passes", _PAIRS, passed, rollouts, bound, None)
            yield Rate(check, "any fails", _PAIRS, failed, rollouts, bound, None)
    words, rule = next(iter(RULES.items()))
    for n in _SIZES:
        for name, rules, _ in _judges(rule):
            *_, share = _shares(rules, n, rollouts // 4, seed, _EQUAL)
            yield Rate(f"{words}, no change, {name}", "one passes", n, share, rollouts // 4)


def _judges(rule: str) -> Iterator[tuple[str, policy.Policy, float | None]]:
    """Yield how candidates are judged, by which policy, and the bound on wrong outcomes."""
    alone = policy.parse(POLICY % rule, "simulated.yaml")
    yield "as a family", alone.in_family(Family(name="simulated", arms=ARMS)), 0.06
    yield "each for itself", alone, None


def _shares(
    rules: policy.Policy, n: int, rollouts: int, seed: int, truth: dict[str, float]
) -> tuple[float, float, float]:
    """Return how often any candidate passes, any fails, and a single one passes."""
    rng = np.random.default_rng([seed, 24, n])
    passed = failed = single = 0
    for _ in range(rollouts):
        outcomes = [
            release_outcome(judge_cells(evidence, rules)) for evidence in _family(rng, n, truth)
        ]
        passed += Outcome.PASS in outcomes
        failed += Outcome.FAIL in outcomes
        single += outcomes.count(Outcome.PASS)
    return passed / rollouts, failed / rollouts, single / rollouts / len(ARMS)


def _family(rng: np.random.Generator, n: int, truth: dict[str, float]) -> Iterator[Evidence]:
    """Yield each candidate's pairs with the one baseline."""
    prompt, half = rng.normal(0, 1, n), SPREAD / np.sqrt(2)
    shares, u = laws.task_shares(truth["task_completion"], base=0.85), rng.random(n)
    done = u < 0.85
    baseline = np.exp(half * (prompt + rng.normal(0, 1, n)))
    nothing = np.full(n, 0.5)
    for _ in ARMS:
        v = rng.random(n)  # each candidate loses and gains tasks by itself
        good = np.where(done, v >= shares.lost / 0.85, v < shares.gained / 0.15)
        times = truth["ttft"] * np.exp(half * (prompt + rng.normal(0, 1, n)))
        yield Evidence(
            prompts=np.arange(n),
            cohort_of=np.zeros(n, dtype=np.int64),
            cohorts=("chat",),
            baseline=side_of(baseline, done, nothing, 0),
            candidate=side_of(times, good, nothing, 1),
            metrics=("groundedness", "task_completion"),
            data_hash="",
        )
