"""Pass rates of each method and of common alternatives, at the margin and without a change.

Alternatives: the point estimate against the margin; "no significant difference, so pass" by McNemar
and by Mann and Whitney (as Kayenta judges, at its two-sided 2 %); the percentile bootstrap.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, mannwhitneyu, norm, wilcoxon

from benchmarks.simulation import laws
from benchmarks.simulation.looks import LOOKS, Look, quantile_ratio_at_look
from evals.stats import Bound, Insufficient, Interval
from evals.stats.bets import log_e_path
from evals.stats.confidence_sequence import Traffic, mean_effect
from evals.stats.hall import mean_difference
from evals.stats.log_ratio import geometric_mean_ratio
from evals.stats.quantile_ratio import quantile_ratio
from evals.stats.score_difference import unpaired_difference
from evals.stats.tango import paired_difference, score

CONFIDENCE = 0.95
SIZES = (200, 1000, 5000)
_RESAMPLES = 500
_RIVALS_EVERY = 4
"""Alternatives judge only every fourth rollout, because they are slow to compute."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The share of rollouts with an event, and the bounds that the design requires."""

    check: str
    what: str
    n: int
    rate: float
    rollouts: int
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the bounds hold; `None` without any."""
        if self.at_most is None and self.at_least is None:
            return None
        return (self.at_most is None or self.rate <= self.at_most) and (
            self.at_least is None or self.rate >= self.at_least
        )


def within(found: Interval | Insufficient, margin: float, bound: Bound) -> bool:
    """Return whether the limit on the margin's side exists and is within the margin."""
    if isinstance(found, Insufficient):
        return False
    if bound == "max":
        return found.upper is not None and found.upper <= margin
    return found.lower is not None and found.lower >= margin


class _Tally:
    """Events over the rollouts of one check and size."""

    def __init__(self, check: str, n: int) -> None:
        self.check, self.n = check, n
        self.seen: dict[str, list[bool]] = {}

    def add(self, **happened: bool) -> None:
        for what, value in happened.items():
            self.seen.setdefault(what, []).append(bool(value))

    def rates(self, **bounds: tuple[float | None, float | None]) -> Iterator[Rate]:
        for what, values in self.seen.items():
            at_most, at_least = bounds.get(what, (None, None))
            share = sum(values) / len(values)
            yield Rate(self.check, what, self.n, share, len(values), at_most, at_least)


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.default_rng([seed, *key])


def tail_latency(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge the p99 ratio: margin 1.10 at truth 1.10, and margin 1.25 at truth 1.0 for power."""
    for n in SIZES:
        tally, rng = _Tally("p99 ratio, margin 1.10, truth 1.10", n), _generator(seed, 1, n)
        for i in range(rollouts):
            c, b = laws.latencies(rng, n, 1.10)
            found = _p99(c, b, 1.10)
            tally.add(ours=within(found, 1.10, "max"))
            if i % _RIVALS_EVERY:
                continue
            tally.add(
                point_estimate=bool(np.quantile(c, 0.99) / np.quantile(b, 0.99) <= 1.10),
                mann_whitney_ns=mannwhitneyu(c, b).pvalue > 0.02,
                bootstrap=_bootstrap_upper(rng, c, b) <= 1.10,
            )
        yield from tally.rates(ours=(0.06, None))
    for n in (*SIZES, 10_000):
        tally, rng = _Tally("p99 ratio, margin 1.25, truth 1.00", n), _generator(seed, 2, n)
        for _ in range(max(rollouts // 4, 1)):
            tally.add(ours=within(_p99(*laws.latencies(rng, n), 1.25), 1.25, "max"))
        yield from tally.rates()


def _p99(c: laws.Floats, b: laws.Floats, margin: float) -> Interval | Insufficient:
    return quantile_ratio(
        c, b, q=0.99, draws=(len(c), len(b)), margin=margin, bound="max", confidence=CONFIDENCE
    )


def _bootstrap_upper(rng: np.random.Generator, c: laws.Floats, b: laws.Floats) -> float:
    """Return the percentile bootstrap's 95 % limit.

    A resample's order statistic is drawn directly: its rank is beta distributed.
    """
    k = math.ceil(0.99 * len(c))

    def resampled(values: laws.Floats) -> laws.Floats:
        index = np.ceil(len(values) * rng.beta(k, len(values) - k + 1, _RESAMPLES)).astype(int)
        return np.asarray(np.sort(values)[np.clip(index, 1, len(values)) - 1])

    return float(np.quantile(resampled(c) / resampled(b), 0.95))


def task_completion(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge the share of completed tasks: margin −.02, base .85, φ .8."""
    least = dict(zip(SIZES, (0.28, 0.84, 0.99), strict=True))
    for truth in (-0.02, 0.0):
        shares = laws.task_shares(truth)
        for n in SIZES:
            tally = _Tally(f"task completion, margin −.02, truth {truth:+.2f}", n)
            rng = _generator(seed, 3, n, int(truth * -100))
            for _ in range(rollouts):
                law = [shares.gained, shares.lost, 1 - shares.gained - shares.lost]
                gained, lost, _ = (int(x) for x in rng.multinomial(n, law))
                tally.add(
                    ours=score(gained, lost, n, -0.02) >= norm.ppf(CONFIDENCE),
                    point_estimate=(gained - lost) / n >= -0.02,
                    mcnemar_ns=_mcnemar_p(gained, lost) > 0.05,
                    fails=_task_p(gained, lost, n) <= 0.05,
                )
            bound = (None, least[n]) if truth == 0 else (0.06, None)
            yield from tally.rates(ours=bound, fails=(None, None) if truth == 0 else (0.06, None))


def _mcnemar_p(gained: int, lost: int) -> float:
    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def _task_p(gained: int, lost: int, n: int) -> float:
    found = paired_difference(gained, lost, n, margin=-0.02, bound="min", confidence=CONFIDENCE)
    return found.p_fail if isinstance(found, Interval) else 1.0


def groundedness(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge the mean score: margin −.02; 2.9 % of the answers collapse, or none."""
    for truth in (-0.02, 0.0):
        for n in SIZES:
            tally = _Tally(f"groundedness, margin −.02, truth {truth:+.2f}", n)
            rng = _generator(seed, 4, n, int(truth * -100))
            for i in range(rollouts):
                d = laws.grounded_differences(rng, n, truth)
                found = mean_difference(d, margin=-0.02, bound="min", confidence=CONFIDENCE)
                tally.add(ours=within(found, -0.02, "min"))
                if i % _RIVALS_EVERY:
                    continue
                tally.add(
                    point_estimate=d.mean() >= -0.02,
                    wilcoxon_ns=wilcoxon(d, method="asymptotic").pvalue > 0.05,
                )
            least = 0.98 if truth == 0 else None
            yield from tally.rates(ours=(0.06 if truth else None, least))


def peeking(rollouts: int, seed: int) -> Iterator[Rate]:
    """Look 100 times at 5,000 pairs, with the truth at the margin of −.02."""
    looks, shares = np.arange(50, 5001, 50), laws.task_shares(-0.02)
    tally, rng = _Tally("100 peeks, truth at the margin", 5000), _generator(seed, 5)
    z = norm.ppf(CONFIDENCE)
    for _ in range(rollouts):
        c, b = laws.task_pairs(rng, 5000, -0.02)
        d = c.astype(float) - b
        gained, lost = np.cumsum(d > 0)[looks - 1], np.cumsum(d < 0)[looks - 1]
        rows = zip(gained.tolist(), lost.tolist(), looks.tolist(), strict=True)
        tally.add(
            ever_pass=log_e_path(d, -0.02)[looks - 1].max() >= math.log(20),
            ever_fail=log_e_path(-d, 0.02)[looks - 1].max() >= math.log(20),
            fixed_n_at_each_peek=any(score(x, y, n, -0.02) >= z for x, y, n in rows),
        )
    assert shares.lost > shares.gained
    yield from tally.rates(ever_pass=(0.05, None), ever_fail=(0.05, None))
    yield from _sequence(max(rollouts // 4, 1), seed)
    yield from _looks(rollouts, seed)


def _sequence(rollouts: int, seed: int) -> Iterator[Rate]:
    """Look repeatedly at split traffic at the margin, with the confidence sequence."""
    tally, rng = _Tally("100 peeks, split 10/90, confidence sequence", 5000), _generator(seed, 6)
    for _ in range(rollouts):
        arm = rng.random(5000) < 0.1
        stratum = rng.integers(0, 4, 5000)
        p = np.array([0.7, 0.8, 0.9, 0.95])[stratum] - 0.02 * arm
        outcome = (rng.random(5000) < p).astype(float)
        lower = [
            mean_effect(
                Traffic(outcome[:n], arm[:n], stratum[:n], 0.1), margin=-0.02, confidence=CONFIDENCE
            )
            for n in range(150, 5001, 200)
        ]
        tally.add(ever_pass=any(within(x, -0.02, "min") for x in lower))
    yield from tally.rates(ever_pass=(0.05, None))


def _looks(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge the p95 ratio against 1.10 at five declared looks: truth at the margin, and at 1.05.

    The alternative divides the same level among the looks (Bonferroni).
    """
    divided = (*LOOKS[:-1], Look(LOOKS[-1].pairs, 0.030))
    for truth, bound in ((1.10, 0.06), (1.05, None)):
        tally = _Tally(f"five looks, p95 ratio, margin 1.10, truth {truth:.2f}", 5000)
        rng = _generator(seed, 7, int(truth * 100))
        for _ in range(rollouts):
            c, b = laws.latencies(rng, 5000, truth)
            tally.add(ever_pass=_any_look(c, b, LOOKS), divided=_any_look(c, b, divided))
        yield from tally.rates(ever_pass=(bound, None))


def _any_look(c: laws.Floats, b: laws.Floats, looks: tuple[Look, ...]) -> bool:
    return any(
        within(
            quantile_ratio_at_look(
                c[: k.pairs], b[: k.pairs], q=0.95, margin=1.10, bound="max", looks=looks
            ),
            1.10,
            "max",
        )
        for k in looks
    )


def other_methods(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge at the margin with the remaining methods: each should pass in .05."""
    for n in (200, 1000):
        rng = _generator(seed, 8, n)
        central, tail, unpaired = (
            _Tally("geometric mean, margin and truth 1.00", n),
            _Tally("p95 ratio, margin and truth 1.25", n),
            _Tally("unpaired share, margin and truth −.05", n),
        )
        for _ in range(rollouts):
            c, b = laws.latencies(rng, n)
            mean = geometric_mean_ratio(np.log(c / b), margin=1, bound="max", confidence=CONFIDENCE)
            p95 = quantile_ratio(
                c * 1.25, b, q=0.95, draws=(n, n), margin=1.25, bound="max", confidence=CONFIDENCE
            )
            counts = (float(rng.binomial(n, 0.80)), n), (float(rng.binomial(n, 0.85)), n)
            share = unpaired_difference(*counts, margin=-0.05, bound="min", confidence=CONFIDENCE)
            central.add(ours=within(mean, 1, "max"))
            tail.add(ours=within(p95, 1.25, "max"))
            unpaired.add(ours=within(share, -0.05, "min"))
        for tally in (central, tail, unpaired):
            yield from tally.rates(ours=(0.06, None))
