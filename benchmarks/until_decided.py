"""Runs that end when they are decided, beside the fixed design under the same policy, simulated.

Five cohorts under the whole gate's simulated policy, with 2,000 pairs a cohort in the fixed design.
A run that ends when it is decided has 2,150 at most, for about the same power. Rows at a margin
simulate only the rules concerned, with 500 pairs a cohort: at most 5 % may pass, or fail, wrongly.
Two rows compare looks with e-values, as `draftgate watch` judges shares, after every pair.

    python benchmarks/until_decided.py [--releases 120] [--errors 200] [--seed 20261123]
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.simulation import laws
from benchmarks.simulation.launches import FAST, SLOWER
from benchmarks.simulation.release import POLICY
from benchmarks.simulation.until_decided import (
    Ended,
    Law,
    at_the_end,
    drawn,
    until_decided,
    with_looks,
)
from collector.contract import Outcome
from engine_adapter.run.look_plan import SHARES
from evals import policy as policies
from evals.evidence.launches import ENOUGH
from evals.gate.at_looks import FAIL_POWER, PASS_POWER
from evals.policy import Policy
from evals.stats.bets import log_e_path
from evals.stats.sequential import spent_levels
from evals.stats.tango import score

FIXED, MOST, SMALL = 2000, 2150, 500
COHORTS = 5
LAWS = (
    Law("no change"),
    Law("5 % faster", slower=0.95),
    Law("one cohort loses .05 of its tasks", worse=-0.05),
)
AT_THE_MARGIN = (
    (Law("times 1.10 of the baseline's, the margin of p95", slower=1.10), "ttft", "p95_ratio"),
    (Law("every cohort loses .02 of its tasks, the margin", worse=-0.02, everywhere=True),
     "task_completion", "diff"),
)  # fmt: skip


def whole(law: Law, releases: int, seed: int) -> dict[str, object]:
    """Simulate both designs on the same rollouts."""
    rules = policies.parse(POLICY, "simulated.yaml")
    ends, fixed = list[Ended](), list[Outcome]()
    for number in range(releases):
        rng = np.random.default_rng([seed, number, LAWS.index(law)])
        evidence = drawn(law, rng, MOST)
        ends.append(until_decided(with_looks(evidence, SHARES), rules))
        rows = np.zeros(len(evidence), dtype=np.bool_)
        for cohort in evidence.cohorts:
            rows[np.flatnonzero(evidence.scope(cohort))[:FIXED]] = True
        fixed.append(at_the_end(evidence.take(rows), rules))
    shares = np.array([end.pairs for end in ends]) / (FIXED * COHORTS)
    return {
        "law": law.words,
        "releases": releases,
        "fixed": {o.value: fixed.count(o) / releases for o in Outcome},
        "until_decided": {o.value: [e.outcome for e in ends].count(o) / releases for o in Outcome},
        "median_share_of_pairs": round(float(np.median(shares)), 3),
        "mean_share_of_pairs": round(float(shares.mean()), 3),
    }


def errors(law: Law, metric: str, stat: str, rollouts: int, seed: int) -> dict[str, object]:
    """Simulate wrong passes of the pooled cell alone, and wrong fails of all cells."""
    rules = _of(policies.parse(POLICY, "simulated.yaml"), metric, stat)
    passes = fails = 0
    for number in range(rollouts):
        evidence = drawn(law, np.random.default_rng([seed, number, 9, len(metric)]), SMALL)
        evidence = with_looks(evidence, SHARES)
        passes += until_decided(evidence, _pooled(rules)).outcome is Outcome.PASS
        fails += until_decided(evidence, rules).outcome is Outcome.FAIL
    return {
        "law": law.words,
        "rollouts": rollouts,
        "wrong_passes": passes / rollouts,
        "wrong_fails": fails / rollouts,
    }


def share_at_the_margin(rollouts: int, seed: int) -> Iterator[dict[str, object]]:
    """Simulate how often any look passes, or fails, a share of tasks whose loss is the margin."""
    law, shares = laws.task_shares(-0.02), tuple(round(100 * share) for share in SHARES)
    chances = [law.gained, law.lost, 1 - law.gained - law.lost]
    to_pass, to_fail = (
        norm.isf(spent_levels(shares, 0.05, power)) for power in (PASS_POWER, FAIL_POWER)
    )
    for pairs in (500, 2500, 10_000):
        rng = np.random.default_rng([seed, pairs])
        sizes = [round(share * pairs) for share in SHARES]
        steps = [rng.multinomial(n, chances, rollouts) for n in np.diff([0, *sizes])]
        counts = np.cumsum(steps, axis=0)
        scores = np.array(
            [
                [score(int(gained), int(lost), n, -0.02) for gained, lost, _ in of_look]
                for of_look, n in zip(counts, sizes, strict=True)
            ]
        )
        yield {
            "law": f"share of tasks at the margin, {pairs} pairs",
            "rollouts": rollouts,
            "wrong_passes": float((scores >= to_pass[:, None]).any(axis=0).mean()),
            "wrong_fails": float((-scores >= to_fail[:, None]).any(axis=0).mean()),
        }


def a_launch_a_look(rollouts: int, seed: int) -> Iterator[dict[str, object]]:
    """Simulate how often any look passes, or fails, a time at its margin, over launches.

    Each launch is fast or 27 % slower, in both arms alike, and a look has one more of them. From
    the third on the limits are Student's t over the launches' ratios.
    """
    for launches in (5, 10, 20):
        rng = np.random.default_rng([seed, launches, 7])
        modes = np.where(rng.random((2, launches, rollouts)) < FAST, 0.0, math.log(SLOWER))
        logs = modes[0] - modes[1] + rng.normal(0, 0.03, (launches, rollouts))
        shares = tuple(round(100 * (n + 1) / launches) for n in range(launches))
        to_pass, to_fail = (spent_levels(shares, 0.05, power) for power in (PASS_POWER, FAIL_POWER))
        passes, fails = np.zeros((2, rollouts), dtype=np.bool_)
        for n in range(ENOUGH, launches + 1):
            seen = logs[:n]
            t = seen.mean(axis=0) / (seen.std(axis=0, ddof=1) / math.sqrt(n))
            passes |= student.cdf(t, n - 1) <= to_pass[n - 1]
            fails |= student.sf(t, n - 1) <= to_fail[n - 1]
        yield {
            "law": f"times at the margin, {launches} launches, one a look",
            "rollouts": rollouts,
            "wrong_passes": float(passes.mean()),
            "wrong_fails": float(fails.mean()),
        }


def _pooled(policy: Policy) -> Policy:
    return replace(policy, rules=tuple(r for r in policy.rules if r.scope == "pooled"))


def _of(policy: Policy, metric: str, stat: str) -> Policy:
    rules = tuple(r for r in policy.rules if (r.metric, r.stat) == (metric, stat))
    return replace(policy, rules=rules)


def by_e_values(rollouts: int, seed: int) -> Iterator[dict[str, object]]:
    """Compare a share's pairs to a pass by e-values and by looks, both at level .05."""
    pooled = _pooled(_of(policies.parse(POLICY, "simulated.yaml"), "task_completion", "diff"))
    found: dict[str, list[float]] = {"looks": [], "e-values": []}
    for number in range(rollouts):
        rng = np.random.default_rng([seed, number, 8])
        evidence = drawn(Law("no change", worse=0.0, everywhere=True), rng, SMALL)
        found["looks"].append(until_decided(with_looks(evidence, SHARES), pooled).pairs)
        candidate, baseline = laws.task_pairs(rng, 4 * SMALL * COHORTS, 0.0)
        path = log_e_path(candidate.astype(np.float64) - baseline, -0.02)
        reached = np.flatnonzero(path >= math.log(20))
        found["e-values"].append(float(reached[0] + 1) if len(reached) else math.inf)
    for how, pairs in found.items():
        yield {"law": "share of tasks, pooled, no change", "by": how,
               "median_pairs_to_a_pass": float(np.median(pairs))}  # fmt: skip


def main() -> None:
    """Print one JSON line a row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--releases", type=int, default=120)
    parser.add_argument("--errors", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261123)
    options = parser.parse_args()
    started = time.process_time()
    for law, metric, stat in AT_THE_MARGIN:
        print(json.dumps(errors(law, metric, stat, options.errors, options.seed)), flush=True)
    for row in (
        *share_at_the_margin(20 * options.errors, options.seed),
        *a_launch_a_look(20 * options.errors, options.seed),
        *by_e_values(options.errors, options.seed),
    ):
        print(json.dumps(row), flush=True)
    for law in LAWS:
        print(json.dumps(whole(law, options.releases, options.seed)), flush=True)
    print(json.dumps({"cpu_seconds": round(time.process_time() - started)}))


if __name__ == "__main__":
    main()
