"""How often the gate fails a candidate that corrupts a share of its grounded answers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.grounding.judged import Judged
from collector.contract import Outcome
from evals import policy
from evals.evaluators.groundedness.model import shipped
from evals.evidence import Evidence, PerPosition, Side
from evals.gate import decide

Floats = NDArray[np.float64]
PAIRS = 1000
SHARES = (0.0, 0.05, 0.1, 0.2)
POLICY = """
version: 1
name: groundedness
cohorts: {min_n: 150}
prove:
  - {metric: groundedness, stat: mean_diff, min: -0.02, scope: pooled}
"""
"""The pooled groundedness cell of the default policy."""


@dataclass(frozen=True, slots=True)
class Power:
    """How a thousand pairs are judged, of which a share was corrupted."""

    data: str
    score: str
    kind: str
    share: float
    mean_drop: float
    failed: float
    passed: float
    rollouts: int


def scores() -> Mapping[str, Callable[[Floats], Floats]]:
    """Return what a probability can be made into: the score shipped is the sharpened one."""
    threshold = shipped().calibration.threshold
    value = np.vectorize(shipped().value)

    def sharpened(factor: float) -> Callable[[Floats], Floats]:
        return lambda p: expit(factor * (logit(threshold) - logit(np.clip(p, 1e-6, 1 - 1e-6))))

    return {
        "calibrated probability": lambda p: 1 - p,
        "sharpened twice": sharpened(2),
        "score (sharpened four times)": value,
        "0 or 1 at the threshold": lambda p: (p < threshold).astype(float),
    }


def powers(found: Judged, rollouts: int, seed: int) -> Iterator[Power]:
    """Yield the gate's decisions: by score over all kinds, then by kind with the shipped score."""
    kinds = sorted({item.kind for item in found.corrupted if item.kind})
    every = scores()
    shipped_score = "score (sharpened four times)"
    for name, score in every.items():
        for share in SHARES:
            yield _power(found, (name, score), kinds, share, rollouts, seed)
    for kind in kinds:
        for share in SHARES[1:]:
            yield _power(
                found, (shipped_score, every[shipped_score]), [kind], share, rollouts, seed
            )


def _power(
    found: Judged,
    score: tuple[str, Callable[[Floats], Floats]],
    kinds: list[str],
    share: float,
    rollouts: int,
    seed: int,
) -> Power:
    name, made = score
    rng = np.random.default_rng([seed, int(share * 1000)])
    before, after = made(found.probability), made(found.corrupted_probability)
    good = np.flatnonzero(found.label == 0)
    of_kind = [np.flatnonzero([c.kind == k for c in found.corrupted]) for k in kinds]
    rules, outcomes, drops = policy.parse(POLICY, "power.yaml"), [], []
    for _ in range(rollouts):
        baseline = before[rng.choice(good, PAIRS)]
        candidate = baseline.copy()
        for turn, at in enumerate(rng.choice(PAIRS, round(share * PAIRS), replace=False)):
            number = rng.choice(of_kind[turn % len(of_kind)])
            baseline[at], candidate[at] = before[found.original[number]], after[number]
        drops.append(float((candidate - baseline).mean()))
        outcomes.append(decide(evidence(baseline, candidate), rules, rollout="power").outcome)
    return Power(
        data=found.name,
        score=name,
        kind="all kinds" if len(kinds) > 1 else kinds[0],
        share=share,
        mean_drop=round(float(np.mean(drops)), 4),
        failed=sum(o is Outcome.FAIL for o in outcomes) / rollouts,
        passed=sum(o is Outcome.PASS for o in outcomes) / rollouts,
        rollouts=rollouts,
    )


def evidence(baseline: Floats, candidate: Floats) -> Evidence:
    """Return pairs of answers with nothing but their groundedness."""
    n = len(baseline)
    return Evidence(
        prompts=np.arange(n),
        cohort_of=np.zeros(n, dtype=np.int64),
        cohorts=("rag",),
        baseline=_side(baseline, 0),
        candidate=_side(candidate, 1),
        metrics=("groundedness",),
        data_hash="",
    )


def _side(grounded: Floats, turn: int) -> Side:
    n = len(grounded)
    none, unknown, no = np.full(n, np.nan), np.full(n, -1), np.zeros(n, dtype=np.bool_)
    lists = PerPosition(unknown[:0], unknown[:0], unknown[:0], no)
    return Side(
        present=~no,
        failed=no,
        start_unix_ns=2 * np.arange(n) + (np.arange(n) + turn) % 2,
        client_lag_s=none,
        ttft_s=none,
        tpot_s=none,
        e2e_s=none,
        output_tokens=none,
        times_flagged=no,
        counts_usable=no,
        speculated=no,
        steps=unknown,
        draft_tokens=unknown,
        accepted_tokens=unknown,
        draft_tokens_per_pos=lists,
        accepted_tokens_per_pos=lists,
        duplicates=0,
        scores={"groundedness": grounded},
    )
