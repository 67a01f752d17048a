"""Power: how often the gate fails a candidate that corrupts a share of its grounded answers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.grounding.judged import JudgedFile
from collector.contract import LATENCIES, Outcome
from evals import policy
from evals.evaluators.groundedness.model import SHARPNESS, shipped
from evals.evidence.columns import Evidence, PerPosition, Side
from evals.gate import decide

Floats = NDArray[np.float64]
PAIRS = 1000
SHARES = (0.0, 0.05, 0.1, 0.2)
POLICY = """
version: 1
name: groundedness
cohorts: {min_n: 150}
validity: {speculation: optional}
prove:
  - {metric: groundedness, stat: mean_diff, min: -0.02, scope: pooled}
"""
"""The pooled groundedness cell of the default policy; the drawn pairs have no draft tokens."""
_RULES = policy.parse(POLICY, "power.yaml")
BESIDE = "beside the other answer, as shipped"


NAMED = ("number", "entity", "negation", "foreign")
"""Changed numbers, exchanged names, added negations, sentences from other passages."""


@dataclass(frozen=True, slots=True)
class Power:
    """The gate's decisions on rollouts of 1,000 pairs with a share of corrupted answers."""

    data: str
    evaluator: str
    score: str
    kind: str
    share: float
    mean_drop: float
    failed: float
    passed: float
    rollouts: int


class Scores(NamedTuple):
    """One score for each corrupted answer's original, and for the corrupted answer."""

    name: str
    before: Floats
    after: Floats


def scores(found: JudgedFile) -> list[Scores]:
    """Return the scores to compare with a margin; the shipped one, judged as a pair, is last."""
    threshold = found.threshold

    def sharpened(factor: float) -> Callable[[Floats], Floats]:
        return lambda p: expit(factor * (logit(threshold) - logit(np.clip(p, 1e-6, 1 - 1e-6))))

    made: dict[str, Callable[[Floats], Floats]] = {
        "calibrated probability": lambda p: 1 - p,
        "alone, sharpened twice": sharpened(2),
        "alone, sharpened four times": sharpened(SHARPNESS),
        "alone, 0 or 1 at the threshold": lambda p: (p < threshold).astype(float),
    }
    before, after = found.probability[found.original], found.corrupted_probability
    every = [Scores(name, of(before), of(after)) for name, of in made.items()]
    if found.beside is not None:
        every.append(Scores(BESIDE, found.beside[:, 0], found.beside[:, 1]))
    return every


def powers(found: JudgedFile, rollouts: int, seed: int) -> Iterator[Power]:
    """Yield the gate's decisions: by score over all kinds, then by kind with the shipped score."""
    kinds = sorted({item.kind for item in found.corrupted if item.kind})
    every = scores(found)
    draws = _Draws(found, rollouts, seed)
    for score in every:
        for share in SHARES:
            yield draws.power(score, ("all kinds", kinds), share)
    for name, of in (("the four named", list(NAMED)), *((kind, [kind]) for kind in kinds)):
        for share in SHARES[1:]:
            yield draws.power(every[-1], (name, of), share)


def equal_arms(found: JudgedFile, rollouts: int, seed: int) -> Iterator[Power]:
    """Yield the gate's decisions on two models' answers, assigned to the arms at random."""
    if found.real_beside is None or not len(found.real_beside):
        return
    numbers = {item.id: at for at, item in enumerate(found.answers)}
    ids = np.array([[numbers[d.one.id], numbers[d.other.id]] for d in found.real])
    alone = np.vectorize(shipped().calibration.value)(found.probability)[ids]
    for name, values in (("alone, sharpened four times", alone), (BESIDE, found.real_beside)):
        rng, outcomes, drops = np.random.default_rng(seed), list[Outcome](), list[float]()
        for _ in range(rollouts):
            chosen = values[rng.choice(len(values), min(PAIRS, len(values)), replace=False)]
            sides = rng.permuted(chosen, axis=1)
            drops.append(float((sides[:, 1] - sides[:, 0]).mean()))
            outcomes.append(decided(sides[:, 0], sides[:, 1]))
        yield _power(found, name, ("two models, arms by chance", 0.0), drops, outcomes)


class _Draws:
    """Rollouts drawn from a file's answers."""

    def __init__(self, found: JudgedFile, rollouts: int, seed: int) -> None:
        self._found, self._rollouts, self._seed = found, rollouts, seed
        self._kinds = np.array([item.kind for item in found.corrupted])

    def power(self, score: Scores, kinds: tuple[str, list[str]], share: float) -> Power:
        rng = np.random.default_rng([self._seed, int(share * 1000)])
        of_kind = [np.flatnonzero(self._kinds == kind) for kind in kinds[1]]
        outcomes, drops = list[Outcome](), list[float]()
        for _ in range(self._rollouts):
            # Uncorrupted pairs have equal texts, hence equal scores.
            baseline = score.before[rng.choice(len(score.before), PAIRS)]
            candidate = baseline.copy()
            for turn, at in enumerate(rng.choice(PAIRS, round(share * PAIRS), replace=False)):
                number = rng.choice(of_kind[turn % len(of_kind)])
                baseline[at], candidate[at] = score.before[number], score.after[number]
            drops.append(float((candidate - baseline).mean()))
            outcomes.append(decided(baseline, candidate))
        return _power(self._found, score.name, (kinds[0], share), drops, outcomes)


def decided(baseline: Floats, candidate: Floats) -> Outcome:
    """Return the gate's decision on pairs of scores."""
    return decide(evidence(baseline, candidate), _RULES, rollout="power").outcome


def _power(
    found: JudgedFile,
    score: str,
    what: tuple[str, float],
    drops: Sequence[float],
    outcomes: Sequence[Outcome],
) -> Power:
    return Power(
        data=found.name,
        evaluator=found.evaluator,
        score=score,
        kind=what[0],
        share=what[1],
        mean_drop=round(float(np.mean(drops)), 4),
        failed=sum(o is Outcome.FAIL for o in outcomes) / len(outcomes),
        passed=sum(o is Outcome.PASS for o in outcomes) / len(outcomes),
        rollouts=len(outcomes),
    )


def evidence(baseline: Floats, candidate: Floats) -> Evidence:
    """Return evidence of pairs that contains only groundedness scores."""
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
        seconds=dict.fromkeys(LATENCIES, none),
        output_tokens=none,
        times_flagged=no,
        counts_usable=no,
        speculated=np.full(n, turn == 1),
        steps=unknown,
        draft_tokens=np.full(n, 4 if turn else -1),
        accepted_tokens=unknown,
        draft_tokens_per_pos=lists,
        accepted_tokens_per_pos=lists,
        duplicates=0,
        scores={"groundedness": grounded},
    )
