"""Pass and fail rates of the whole gate: five cohorts, four statistics, prove and guard rules."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.simulation import laws
from benchmarks.simulation.methods import Rate
from collector.contract import LATENCIES, Outcome
from evals import policy
from evals.evidence.columns import Evidence, PerPosition, Side
from evals.gate.release import judge_cells, release_outcome

COHORTS = ("chat", "code", "json", "rag", "tool_call")
POLICY = """
version: 1
name: simulated
cohorts: {min_n: 150}
prove:
  - {metric: ttft, stat: p95_ratio, max: 1.10, scope: pooled}
  - {metric: ttft, stat: p99_ratio, max: 1.25, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.02, scope: pooled}
  - {metric: groundedness, stat: mean_diff, min: -0.02, scope: pooled}
  - {metric: ttft, stat: p95_ratio, max: 1.25, scope: cohort}
  - {metric: task_completion, stat: diff, min: -0.05, scope: cohort}
  - {metric: groundedness, stat: mean_diff, min: -0.05, scope: cohort}
guard:
  - {metric: ttft, stat: p95_ratio, max: 1.10, scope: cohort}
  - {metric: ttft, stat: p99_ratio, max: 1.25, scope: cohort}
  - {metric: task_completion, stat: diff, min: -0.02, scope: cohort}
  - {metric: groundedness, stat: mean_diff, min: -0.02, scope: cohort}
"""


def whole_gate(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge identical systems at three sizes, then a loss of .05 of one cohort's tasks."""
    rules = policy.parse(POLICY, "simulated.yaml")
    least = {1000: 0.45, 2000: 0.82, 5000: 0.99}
    for a_cohort, wanted in least.items():
        shares = _shares(rules, a_cohort, rollouts, seed, worse=0.0)
        check = "whole gate, no change"
        yield Rate(check, "pass", a_cohort, shares[Outcome.PASS], rollouts, None, wanted)
        yield Rate(check, "fail", a_cohort, shares[Outcome.FAIL], rollouts, 0.0, None)
    shares = _shares(rules, 1000, rollouts, seed, worse=-0.05)
    check = "whole gate, one cohort loses .05 of its tasks"
    yield Rate(check, "pass", 1000, shares[Outcome.PASS], rollouts, 0.03, None)
    yield Rate(check, "fail", 1000, shares[Outcome.FAIL], rollouts, None, 0.88)


def power(sizes: Sequence[int], rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge identical systems at the given sizes, in pairs per cohort."""
    rules = policy.parse(POLICY, "simulated.yaml")
    for a_cohort in sizes:
        shares = _shares(rules, a_cohort, rollouts, seed, worse=0.0)
        passes = shares[Outcome.PASS]
        yield Rate("whole gate, no change", "pass", a_cohort, passes, rollouts, None, None)


def _shares(
    rules: policy.Policy, a_cohort: int, rollouts: int, seed: int, *, worse: float
) -> dict[Outcome, float]:
    rng = np.random.default_rng([seed, 20, a_cohort, int(worse * -100)])
    counts = dict.fromkeys(Outcome, 0)
    for _ in range(rollouts):
        evidence = synthesised(rng, a_cohort, worse=worse)
        counts[release_outcome(judge_cells(evidence, rules))] += 1
    return {outcome: count / rollouts for outcome, count in counts.items()}


def synthesised(rng: np.random.Generator, a_cohort: int, *, worse: float = 0.0) -> Evidence:
    """Return pairs of equal arms; the first cohort's task completion differs by `worse`."""
    n = a_cohort * len(COHORTS)
    cohort_of = rng.permutation(np.repeat(np.arange(len(COHORTS)), a_cohort))
    times = laws.latencies(rng, n)
    done_c, done_b = laws.task_pairs(rng, n, 0.0)
    if worse:
        rows = cohort_of == 0
        done_c[rows], done_b[rows] = laws.task_pairs(rng, int(rows.sum()), worse)
    grounded = 0.5 + laws.grounded_differences(rng, n, 0.0) / 2
    return Evidence(
        prompts=np.arange(n),
        cohort_of=cohort_of,
        cohorts=COHORTS,
        baseline=side_of(times.baseline, done_b, np.full(n, 0.5), 0),
        candidate=side_of(times.candidate, done_c, grounded, 1),
        metrics=("groundedness", "task_completion"),
        data_hash="",
    )


def side_of(ttft_s: laws.Floats, done: laws.Bools, grounded: laws.Floats, turn: int) -> Side:
    """Return one arm's columns; `turn` is 0 for the baseline and 1 for the candidate."""
    n = len(ttft_s)
    none, unknown, no = np.full(n, np.nan), np.full(n, -1), np.zeros(n, dtype=np.bool_)
    lists = PerPosition(unknown[:0], unknown[:0], unknown[:0], no)
    first = (np.arange(n) + turn) % 2  # ABBA: the arms swap from pair to pair
    return Side(
        present=~no,
        failed=no,
        start_unix_ns=2 * np.arange(n) + first,
        client_lag_s=none,
        seconds={**dict.fromkeys(LATENCIES, none), "ttft": ttft_s},
        output_tokens=none,
        times_flagged=no,
        counts_usable=no,
        speculated=np.full(n, turn == 1),
        steps=unknown,
        draft_tokens=np.full(n, 4 if turn else -1),
        accepted_tokens=np.full(n, 2 if turn else -1),
        draft_tokens_per_pos=lists,
        accepted_tokens_per_pos=lists,
        duplicates=0,
        scores={"task_completion": done.astype(float), "groundedness": grounded},
    )
