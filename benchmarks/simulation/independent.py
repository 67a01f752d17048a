"""The power that the gate's allowance for dependence costs with independent requests.

Each cell judges the same draws twice: with the gate's limits, and with textbook limits for
independent requests. In every row the truth is such that a normal limit would pass in about .8 of
rollouts, so that a loss of power shows.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.simulation import laws
from benchmarks.simulation.dependence import LOST, P95, P99, TASKS, evidence_of, finding
from benchmarks.simulation.laws import Bools, Floats
from benchmarks.simulation.methods import Rate, within
from collector.contract import Outcome
from evals import policy as policies
from evals.evidence.columns import Evidence
from evals.policy.rules import Rule
from evals.stats import Insufficient, Interval, welch
from evals.stats.dependence import INDEPENDENT
from evals.stats.hall import mean_difference
from evals.stats.log_ratio import geometric_mean_ratio
from evals.stats.quantile_ratio import quantile_ratio, unpaired_quantile_ratio
from evals.stats.ratio_of_sums import ratio_of_sums
from evals.stats.score_difference import unpaired_difference
from evals.stats.tango import paired_difference

SIZES = (500, 2_000, 10_000)
LOSS = 0.03
"""Most power that a cell may lose."""
_POWERED = 2.487
"""Distance from the margin, in standard errors, at which a 95 % limit passes in .8 of rollouts."""
_CONFIDENCE = 0.95
_TPOT = "{metric: tpot, stat: geomean_ratio, max: 1.00, scope: pooled}"
_GROUNDED = "{metric: groundedness, stat: mean_diff, min: -0.02, scope: pooled}"
_TOKENS = "{metric: output_tokens, stat: mean_ratio, max: 1.05, scope: pooled}"

Drawn = tuple[Any, Any]
"""Values of the candidate and of the baseline: floats or booleans."""
Draw = Callable[[np.random.Generator, int, float], Drawn]
"""Draws values from a generator, a size and a true difference or ratio."""
Plain = Callable[[Drawn, dict[str, Any]], Interval | Insufficient]
"""Computes limits for independent requests from values, margin, bound and confidence."""


class _Cell(NamedTuple):
    what: str
    rule: str
    column: str
    spread: float
    """Standard deviation of the estimate's logarithm, or of the difference, times √n."""
    draw: Draw
    plain: Plain
    split: bool = False


def independent(rollouts: int, seed: int, sizes: tuple[int, ...] = SIZES) -> Iterator[Rate]:
    """Yield each cell's power with both limits, and the power that the gate's limits lose.

    `sizes` are numbers of pairs, or of requests per arm for split traffic.
    """
    for cell in _CELLS:
        for n in sizes:
            rng = np.random.default_rng([seed, n, *cell.what.encode()])
            yield from _compared(cell, rollouts, rng, 2 * n if cell.split else n)


def _compared(cell: _Cell, rollouts: int, rng: np.random.Generator, n: int) -> Iterator[Rate]:
    design = "design: split\n" if cell.split else ""
    rules = policies.parse(
        f"version: 1\nname: simulated\n{design}prove:\n  - {cell.rule}\n", "simulated.yaml"
    )
    (rule,) = rules.rules
    truth, passed = _truth(cell, rule, n), np.zeros((2, rollouts), dtype=np.bool_)
    asked = {"margin": rule.margin, "bound": rule.bound, "confidence": _CONFIDENCE}
    for i in range(rollouts):
        values = cell.draw(rng, n, truth)
        chosen = rng.random(n) < 0.5
        evidence = _evidence(cell, values, chosen)
        seen = (values[0][chosen], values[1][~chosen]) if cell.split else values
        passed[0, i] = finding(evidence, rules).outcome is Outcome.PASS
        passed[1, i] = within(cell.plain(seen, asked), rule.margin, rule.bound)
    gate, plain = passed.mean(axis=1)
    yield Rate(cell.what, "pass, by the gate", n, float(gate), rollouts)
    yield Rate(cell.what, "pass, by plain limits", n, float(plain), rollouts)
    yield Rate(cell.what, "power lost", n, float(plain - gate), rollouts, LOSS)


def _truth(cell: _Cell, rule: Rule, n: int) -> float:
    towards = _POWERED * cell.spread / math.sqrt(n) * (1 if rule.bound == "max" else -1)
    if rule.stat.endswith("_ratio"):
        return rule.margin * math.exp(-towards)
    return rule.margin - towards


def _evidence(cell: _Cell, values: Drawn, chosen: Bools) -> Evidence:
    columns: dict[str, Any] = {cell.column: values}
    if cell.split:
        columns["present"] = (chosen, ~chosen)
    return evidence_of(len(values[0]), **columns)


def _normal_times(rng: np.random.Generator, n: int, ratio: float) -> Drawn:
    shared = np.exp(rng.normal(-4, 0.3, n))
    return shared * ratio * np.exp(rng.normal(0, 0.3, n)), shared


def _separate_times(rng: np.random.Generator, n: int, ratio: float) -> Drawn:
    return ratio * np.exp(rng.normal(0, 0.4, n)), np.exp(rng.normal(0, 0.4, n))


def _tasks(rng: np.random.Generator, n: int, difference: float) -> Drawn:
    return laws.task_pairs(rng, n, difference)


def _failures(rng: np.random.Generator, n: int, difference: float) -> Drawn:
    return rng.random(n) < 0.03 + difference, rng.random(n) < 0.03


def _grounded(rng: np.random.Generator, n: int, difference: float) -> Drawn:
    return 0.5 + np.clip(rng.normal(difference, 0.25, n), -0.5, 0.5), np.full(n, 0.5)


def _grounded_apart(rng: np.random.Generator, n: int, difference: float) -> Drawn:
    return rng.beta(4 * (0.5 + difference), 4 * (0.5 - difference), n), rng.beta(2, 2, n)


def _lengths(rng: np.random.Generator, n: int, ratio: float) -> Drawn:
    def tokens(factor: float) -> Floats:
        return np.ceil(factor * 200 * rng.lognormal(0, 0.5, n))

    return tokens(ratio), tokens(1.0)


def _tango(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
    candidate, baseline = values
    gained, lost = (float(x.sum()) for x in (candidate & ~baseline, baseline & ~candidate))
    return paired_difference(gained, lost, len(candidate), **asked)


def _hall(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
    return mean_difference(values[0] - values[1], **asked)


def _student(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
    return geometric_mean_ratio(np.log(values[0] / values[1]), **asked)


def _sums(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
    return ratio_of_sums([values[0]], [values[1]], effect_of=lambda _: INDEPENDENT, **asked)


def _quantile(q: float, *, paired: bool = True) -> Plain:
    compare = quantile_ratio if paired else unpaired_quantile_ratio

    def limits(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
        return compare(*values, q=q, draws=(len(values[0]), len(values[1])), **asked)

    return limits


def _miettinen(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
    arms = [(float(x.sum()), float(len(x))) for x in values]
    return unpaired_difference(arms[0], arms[1], **asked)


def _welch(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
    return welch.mean_difference(*values, **asked)


def _welch_of_logs(values: Drawn, asked: dict[str, Any]) -> Interval | Insufficient:
    draws, ones = [float(len(x)) for x in values], [np.ones(len(x)) for x in values]
    return welch.geometric_mean_ratio(
        *values, draws=(draws[0], draws[1]), weights=(ones[0], ones[1]), **asked
    )


_SPLIT_TPOT = "{metric: tpot, stat: geomean_ratio, max: 1.05, scope: pooled}"
_CELLS = (
    _Cell("failures, +.01", LOST, "failed", 0.24, _failures, _tango),
    _Cell("task completion, −.02", TASKS, "done", 0.226, _tasks, _tango),
    _Cell("groundedness, −.02", _GROUNDED, "grounded", 0.25, _grounded, _hall),
    _Cell("tpot, geometric mean, 1.00", _TPOT, "tpot_s", 0.3, _normal_times, _student),
    _Cell("output tokens, sums, 1.05", _TOKENS, "output_tokens", 0.754, _lengths, _sums),
    _Cell("ttft p95, 1.10", P95, "ttft_s", 1.195, _separate_times, _quantile(0.95)),
    _Cell("ttft p99, 1.25", P99, "ttft_s", 2.112, _separate_times, _quantile(0.99)),
    _Cell("split: failures, +.01", LOST, "failed", 0.34, _failures, _miettinen, split=True),
    _Cell("split: task completion, −.02", TASKS, "done", 0.71, _tasks, _miettinen, split=True),
    _Cell("split: groundedness, −.02", _GROUNDED, "grounded", 0.447, _grounded_apart, _welch,
          split=True),
    _Cell("split: tpot, geometric mean, 1.05", _SPLIT_TPOT, "tpot_s", 0.8, _separate_times,
          _welch_of_logs, split=True),
    _Cell("split: ttft p95, 1.10", P95, "ttft_s", 1.69, _separate_times,
          _quantile(0.95, paired=False), split=True),
)  # fmt: skip
