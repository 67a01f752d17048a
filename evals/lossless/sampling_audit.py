"""Test whether sampled tokens follow the baseline's distribution: four e-processes over tokens.

All inputs are arrays, so any engine can provide them that scores an emitted token under the
baseline with the request's temperature, top-p and top-k.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from evals.stats.bets import Bets, log_e_path

METHOD = "sampling-audit/1"
ALARM = 100.0
"""The e-value at which the sampler counts as broken; a correct one reaches it in at most 1 %."""
_DECILES = 10
_BISECTIONS = 40

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rescored(NamedTuple):
    """Each emitted token's statistics, minus their expectations under the baseline.

    Under the baseline `decile` is uniform and the others have mean 0. NaN if unknown.
    """

    decile: Ints
    top1: Floats
    contrast: Floats
    acceptance: Floats


class Drafts(NamedTuple):
    """The draft at each emitted token's position; NaN rows where nothing was drafted."""

    probabilities: Floats
    """q, one row per token."""
    token: Ints | None = None
    """The drafted tokens; `None` if they are unknown, as `accepted` then is."""
    accepted: NDArray[np.bool_] | None = None


def observe(
    probabilities: Floats, token: Ints, drafts: Drafts | None, rng: np.random.Generator
) -> Rescored:
    """Return the statistics of each emitted token.

    `probabilities` is the baseline's distribution at each token's position, one row per token,
    after temperature and truncation. Decile: of the randomised rank-PIT, Σ p of more likely tokens
    plus a uniform share of the token's own p. Top-1: 1{x = argmax p} − max p. Contrast:
    1{q(x) > p(x)} − Σ p where q > p. Acceptance: 1{accepted} − min(1, p/q) of the draft's token.
    """
    rows = np.arange(len(token))
    own = probabilities[rows, token]
    above = np.where(probabilities > own[:, None], probabilities, 0.0).sum(axis=1)
    pit = above + rng.random(len(token)) * own
    decile = np.minimum((pit * _DECILES).astype(np.int64), _DECILES - 1)
    top1 = (token == probabilities.argmax(axis=1)) - probabilities.max(axis=1)
    none = np.full(len(token), np.nan)
    if drafts is None:
        return Rescored(decile, top1, none, none)
    q = drafts.probabilities
    drafted = ~np.isnan(q[:, 0])
    with np.errstate(invalid="ignore", divide="ignore"):
        likelier = q > probabilities
        contrast = likelier[rows, token] - np.where(likelier, probabilities, 0.0).sum(axis=1)
        acceptance = none
        if drafts.token is not None and drafts.accepted is not None:
            ratio = probabilities[rows, drafts.token] / q[rows, drafts.token]
            acceptance = drafts.accepted - np.minimum(1.0, ratio)
    return Rescored(
        decile, top1, np.where(drafted, contrast, np.nan), np.where(drafted, acceptance, np.nan)
    )


@dataclass(frozen=True, slots=True)
class SamplingAudit:
    """Evidence against "every token follows the baseline's distribution", valid at any time.

    E is the mean of four e-values: for the deciles, a Dirichlet-multinomial (½) against the nearest
    law within `tolerance` of uniform; for each of the three means, bets that it is above or below
    0 by more than `tolerance`, which allows for numerical error. Under the hypothesis
    P(E ever reaches 100) ≤ 1 %. Without tokens E = 1.

    Source: I. Waudby-Smith and A. Ramdas, Journal of the Royal Statistical Society B 86 (2024)
    1–27; the projection, P. Grünwald, R. de Heide and W. Koolen, ibid. 1091–1128.
    """

    tolerance: float
    counts: tuple[int, ...]
    log_deciles: float
    sides: tuple[Bets, ...]
    """For top-1, contrast and acceptance: bets that the mean is above, and below, the tolerance."""

    @classmethod
    def begin(cls, tolerance: float) -> Self:
        """Return the state before the first token."""
        return cls(tolerance, (0,) * _DECILES, 0.0, (Bets(tolerance),) * 6)

    def after(self, seen: Rescored) -> Self:
        """Return the state after these further tokens, in their order."""
        path, counts = _decile_path(seen.decile, self.counts, self.tolerance)
        sides = []
        for i, bets in enumerate(self.sides):
            values = (seen.top1, seen.contrast, seen.acceptance)[i // 2]
            known = values[~np.isnan(values)]
            sides.append(bets.after(known if i % 2 == 0 else -known))
        log_deciles = self.log_deciles + (float(path[-1]) if len(path) else 0.0)
        return type(self)(self.tolerance, counts, log_deciles, tuple(sides))

    @property
    def log_e(self) -> float:
        """The logarithm of E."""
        means = [np.logaddexp(a.log_e, b.log_e) - math.log(2)
                 for a, b in zip(self.sides[::2], self.sides[1::2], strict=True)]  # fmt: skip
        return float(logsumexp([self.log_deciles, *means])) - math.log(4)

    @property
    def alarmed(self) -> bool:
        """Whether E is at or above the alarm now."""
        return self.log_e >= math.log(ALARM)


def log_e_after_each(seen: Rescored, tolerance: float) -> Floats:
    """Return log E after each token in turn; the last is `SamplingAudit.log_e`."""
    paths = [_decile_path(seen.decile, (0,) * _DECILES, tolerance)[0]]
    for values in (seen.top1, seen.contrast, seen.acceptance):
        known = np.where(np.isnan(values), 0.0, 1.0)
        d = values[known > 0]
        sides = [np.concatenate(([0.0], log_e_path(x, tolerance))) for x in (d, -d)]
        both = np.logaddexp(*sides) - math.log(2)
        paths.append(both[known.cumsum().astype(np.int64)])
    return np.asarray(logsumexp(paths, axis=0)) - math.log(4)


def _decile_path(
    decile: Ints, before: tuple[int, ...], tolerance: float
) -> tuple[Floats, tuple[int, ...]]:
    """Return log E of the deciles after each token, starting from 0, and the final counts."""
    hits = decile[:, None] == np.arange(_DECILES)
    past = np.array(before) + np.concatenate(
        (np.zeros((1, _DECILES), dtype=np.int64), hits.cumsum(axis=0))
    )
    predicted = (past[:-1] + 0.5) / (past[:-1].sum(axis=1, keepdims=True) + _DECILES / 2)
    rows = np.arange(len(decile))
    allowed = _nearest(predicted, tolerance)
    path = np.log(predicted[rows, decile] / allowed[rows, decile]).cumsum()
    return path, tuple(int(n) for n in past[-1])


def _nearest(predicted: Floats, tolerance: float) -> Floats:
    """Return, for each row, the law within the tolerance of uniform that is nearest to it.

    Nearest in Kullback–Leibler divergence: c·predicted, clipped to 1/10 ± tolerance, with c such
    that it sums to 1. Then Σ π·predicted/nearest ≤ 1 under every law π within the tolerance.
    """
    low, high = 1 / _DECILES - tolerance, 1 / _DECILES + tolerance
    least = np.full((len(predicted), 1), 1e-3)
    most = np.full((len(predicted), 1), 1e6)
    for _ in range(_BISECTIONS):
        middle = np.sqrt(least * most)
        beyond = np.clip(middle * predicted, low, high).sum(axis=1, keepdims=True) > 1
        least, most = np.where(beyond, least, middle), np.where(beyond, middle, most)
    return np.clip(most * predicted, low, high)  # sums to 1 or slightly more, which lowers E
