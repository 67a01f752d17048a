"""Error rates of the gate if a server's speed varies from launch to launch.

Launches are fast or 27 % slower, two of seven fast, drawn independently for each arm; otherwise the
arms differ only by the ratio that is given.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.simulation import laws
from benchmarks.simulation.dependence import evidence_of, policy_of
from benchmarks.simulation.methods import Rate
from collector.contract import Finding, Outcome, Reason
from evals.evidence.columns import Evidence
from evals.gate.release import judge_cells
from evals.policy import Policy

SLOWER = 1.27
FAST = 2 / 7
A_LAUNCH = 100
"""Pairs."""
LAUNCHES = (1, 3, 5, 10)


class Rule(NamedTuple):
    """The rule of one cell, and its margin."""

    metric: str
    text: str
    margin: float


RULES = (
    Rule("tpot", "{metric: tpot, stat: geomean_ratio, max: 1.00, scope: pooled}", 1.0),
    Rule("ttft", "{metric: ttft, stat: p95_ratio, max: 1.10, scope: pooled}", 1.1),
    Rule("e2e", "{metric: e2e, stat: p50_ratio, max: 1.05, scope: pooled}", 1.05),
    Rule("e2e", "{metric: cost_per_1k_output_tokens, stat: mean_ratio, max: 1.05, scope: pooled}",
         1.05),
)  # fmt: skip


def launched(rollouts: int, seed: int) -> Iterator[Rate]:
    """Yield pass and fail rates at the margin, then the power at margin 1.10 without a change."""
    for rule in RULES:
        for launches in LAUNCHES:
            sizes = (A_LAUNCH,) * launches
            yield from _rates(rule, rule.margin, sizes, (rollouts, seed))
    uneven = (200, 160, 100, 60, 40)
    yield from _rates(RULES[0], 1.0, uneven, (rollouts, seed), "5 launches of 40 to 200 pairs")
    for rule in RULES[:2]:
        for launches in (3, 5, 10):
            words = f"{launches} launches of split traffic"
            sizes = (2 * A_LAUNCH,) * launches
            yield from _rates(rule, rule.margin, sizes, (rollouts, seed), words, split=True)
    wide = Rule("tpot", "{metric: tpot, stat: geomean_ratio, max: 1.10, scope: pooled}", 1.1)
    for launches in (3, 5, 10, 20, 30):
        yield from _rates(wide, 1.0, (A_LAUNCH,) * launches, (rollouts // 2, seed))
    yield from _forecast(wide, (rollouts // 4, seed))


def _rates(
    rule: Rule,
    truth: float,
    sizes: tuple[int, ...],
    draws: tuple[int, int],
    words: str = "",
    *,
    split: bool = False,
) -> Iterator[Rate]:
    rollouts, seed = draws
    rng = np.random.default_rng([seed, 60, len(sizes), round(100 * truth), len(rule.text)])
    policy, counts = _policy(rule, split=split), dict.fromkeys(Outcome, 0)
    for _ in range(rollouts):
        evidence = evidence_over(rng, rule.metric, sizes, truth, split=split)
        counts[_finding(evidence, policy).outcome] += 1
    at_margin, enough = truth == rule.margin, len(sizes) >= 3
    stat = f"{rule.text.split(',')[0].split()[-1]} {rule.text.split(',')[1].split()[-1]}"
    launches = words or f"{len(sizes)} launch{'es' if len(sizes) > 1 else ''}"
    check = f"{stat} ≤ {rule.margin:.2f}, truth {truth:.2f}, {launches}"
    for outcome in (Outcome.PASS, Outcome.FAIL):
        bound = 0.06 if enough and (at_margin or outcome is Outcome.FAIL) else None
        yield Rate(check, outcome.value, sum(sizes), counts[outcome] / rollouts, rollouts, bound)


def _forecast(rule: Rule, draws: tuple[int, int]) -> Iterator[Rate]:
    """Repeat undecided rollouts of 5 launches with the launches asked for, 200 at most in all."""
    rollouts, seed = draws
    rng = np.random.default_rng([seed, 61])
    further, decided, policy = list[int](), 0, _policy(rule)
    while len(further) < rollouts:
        first = evidence_over(rng, rule.metric, (A_LAUNCH,) * 5, 1.0)
        needed = _finding(first, policy).launches_needed
        if needed is None:
            continue
        further.append(needed)
        total = (A_LAUNCH,) * (5 + min(needed, 195))
        decided += _finding(evidence_over(rng, rule.metric, total, 1.0), policy).outcome is (
            Outcome.PASS
        )
    what = f"pass with the launches asked for (median {np.median(further):.0f} more)"
    yield Rate("tpot ≤ 1.10, truth 1.00, undecided at 5 launches", what, 500, decided / rollouts,
               rollouts)  # fmt: skip


def _finding(evidence: Evidence, policy: Policy) -> Finding:
    """Return the finding of the only cell; raises `ValueError` if the evidence cannot be judged."""
    found = judge_cells(evidence, policy)[0]
    if found.reason not in (None, Reason.TOO_FEW, Reason.TOO_CLOSE, Reason.LAUNCHES,
                            Reason.DEPENDENCE, Reason.DRIFT):  # fmt: skip
        raise ValueError(f"wanted evidence that can be judged: {found.message}")
    return found


@functools.cache
def _policy(rule: Rule, *, split: bool = False) -> Policy:
    prices = "prices: {baseline_per_hour: 1, candidate_per_hour: 1}"
    design = "design: split" if split else "design: paired_replay"
    return policy_of(rule.text, 1, f"{design}\n{prices}")


def evidence_over(
    rng: np.random.Generator,
    metric: str,
    sizes: tuple[int, ...],
    ratio: float,
    *,
    split: bool = False,
) -> Evidence:
    """Return pairs of consecutive launches; each arm of a launch is fast or slow at random.

    For split traffic each request is answered by one arm, drawn at random.
    """
    n, launch = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    modes = np.where(rng.random((2, len(sizes))) < FAST, 1.0, SLOWER)
    times = laws.latencies(rng, n, ratio)
    seconds = (times.candidate * modes[0][launch], times.baseline * modes[1][launch])
    tokens = np.full(n, 100.0)
    plain = evidence_of(n, **{f"{metric}_s": seconds}, output_tokens=(tokens, tokens))
    names = launch.astype(str).astype(np.object_)
    candidate, baseline = (
        replace(side, recorded={"launch": names}) for side in (plain.candidate, plain.baseline)
    )
    if split:
        chosen = rng.permutation(n) < n / 2
        candidate = replace(candidate, present=chosen)
        baseline = replace(baseline, present=~chosen)
    return replace(plain, candidate=candidate, baseline=baseline).with_launches()
