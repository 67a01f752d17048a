"""An exact p value for a paired loss; the normal approximation is too small in the tail."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, xlogy
from scipy.stats import binom

Floats = NDArray[np.float64]

_GAMMA = 1e-6
"""Probability added because the nuisance is restricted to a confidence set."""
_TAIL = 1e-12
_GRID = 40
_FINER = 17
_NEAR = 0.9
"""Local maxima above this share of the highest value are searched more finely."""


def loss_p(gained: float, lost: float, n: float, loss: float) -> float:
    """Return the exact p value of "the share lost exceeds the share gained by at most `loss`".

    Paired: of n pairs, only the candidate succeeds in `gained`, only the baseline in `lost`. The
    tables are ordered by r, the signed root of their likelihood ratio at −`loss`; the share gained,
    g, is the nuisance:

        p = sup over g of P(r(B, C) ≤ r seen; P(gain) = g, P(loss) = g + loss) + γ,

    g held to its Clopper–Pearson set at 1 − γ, γ = 1e-6, which keeps p valid (Berger and Boos).
    The supremum over the whole hypothesis lies on its boundary, since r is monotone in both counts
    (Sidik). In the tails r depends least on g: ordered by Tango's score, tables without gains,
    where that score is most skewed, would raise the supremum of all others by half.
    Fractional counts are rounded towards no loss. n = 0 gives 1.

    Sources: K. Sidik, Statistics in Medicine 22 (2003) 265–278; R. Berger and D. Boos, Journal of
    the American Statistical Association 89 (1994) 1012–1016; r as in O. Barndorff-Nielsen and
    D. Cox, Inference and Asymptotics (Chapman & Hall 1994).
    """
    pairs, gains, losses = math.floor(n + 1e-9), math.ceil(gained - 1e-9), math.floor(lost + 1e-9)
    if pairs <= 0 or losses <= 0:
        return 1.0
    gains = min(gains, pairs - losses)
    low, high = _nuisance(gains, pairs, max(0.0, -loss), (1 - loss) / 2)
    reach = _Region.of(gains, losses, pairs, loss, (low, high))
    return min(1.0, _supremum(reach, low, high) + _GAMMA)


def _supremum(reach: "_Region", low: float, high: float) -> float:
    """Return the highest chance between two shares, by finer grids around each local maximum."""
    shares = _shares(low, high, reach.loss)
    chances = reach.chance(shares)
    best = float(chances.max())
    beside = np.pad(chances, 1)
    peaks = (chances >= beside[:-2]) & (chances >= beside[2:]) & (chances >= _NEAR * best)
    around = np.flatnonzero(peaks)
    left = shares[np.maximum(around - 1, 0)]
    right = shares[np.minimum(around + 1, len(shares) - 1)]
    parts = np.linspace(0, 1, _FINER)
    for _ in range(2):
        finer = left[:, None] + (right - left)[:, None] * parts
        found = reach.chance(finer.ravel()).reshape(finer.shape)
        best = max(best, float(found.max()))
        worst = found.argmax(axis=1)
        rows = np.arange(len(worst))
        left = finer[rows, np.maximum(worst - 1, 0)]
        right = finer[rows, np.minimum(worst + 1, _FINER - 1)]
    return best


def _shares(low: float, high: float, loss: float) -> Floats:
    """Return a grid of shares gained, as dense as counts gained, lost and of neither tell apart."""

    def even(first: float, last: float) -> Floats:
        ends = math.sqrt(max(first, 0.0)), math.sqrt(max(last, 0.0))
        return np.asarray(np.linspace(*ends, _GRID) ** 2)

    gained, lost = even(low, high), even(low + loss, high + loss) - loss
    neither = (1 - loss - even(1 - loss - 2 * high, 1 - loss - 2 * low)) / 2
    return np.clip(np.union1d(np.union1d(gained, lost), neither), low, high)


def _nuisance(gains: int, n: int, least: float, most: float) -> tuple[float, float]:
    """Return the Clopper–Pearson limits of the share gained, clipped to what the loss allows."""
    low = 0.0 if gains == 0 else float(betaincinv(gains, n - gains + 1, _GAMMA / 2))
    high = 1.0 if gains == n else float(betaincinv(gains + 1, n - gains, 1 - _GAMMA / 2))
    return min(max(low, least), most), min(max(high, least), most)


class _Region:
    """The tables at least as bad as the one seen: for each count gained, the fewest lost."""

    def __init__(
        self, gains: NDArray[np.int64], fewest: NDArray[np.int64], n: int, loss: float
    ) -> None:
        self.gains, self.fewest, self.n, self.loss = gains, fewest, n, loss

    @classmethod
    def of(
        cls, gains: int, losses: int, n: int, loss: float, shares: tuple[float, float]
    ) -> "_Region":
        """Find by bisection the fewest losses whose r is at most the one seen."""
        seen = float(_signed_roots(np.array([gains]), np.array([losses]), n, loss)[0])
        first = int(binom.ppf(_TAIL, n, shares[0])) if shares[0] > 0 else 0
        last = int(binom.isf(_TAIL, n, shares[1]))
        b = np.arange(max(first, 0), min(last, n) + 1)
        low, high = np.full(len(b), -1), n - b + 1  # fails at low, holds at high (or never)
        while (high - low > 1).any():
            middle = (low + high) // 2
            inside = np.clip(middle, 0, n - b)
            holds = (_signed_roots(b, inside, n, loss) <= seen + 1e-9) & (middle >= 0)
            open_ = high - low > 1
            high = np.where(open_ & holds, middle, high)
            low = np.where(open_ & ~holds, middle, low)
        return cls(b, high, n, loss)

    def chance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the region's probability at each share gained."""
        g = shares[:, None]
        conditional = np.clip((g + self.loss) / np.maximum(1 - g, 1e-300), 0.0, 1.0)
        gained = binom.pmf(self.gains, self.n, g)
        lost = binom.sf(self.fewest - 1, self.n - self.gains, conditional)
        left_out = 2 * _TAIL  # gains outside the range count as worst
        return np.asarray((gained * lost).sum(axis=1) + left_out)


def _signed_roots(
    gained: NDArray[np.int64], lost: NDArray[np.int64], n: int, loss: float
) -> NDArray[np.float64]:
    """Return r = ±√(2 Σ O log(O/E)) of many tables at once, below 0 where more is lost.

    O are the counts gained, lost and neither, E those of the constrained likelihood's maximum, at
    which P(loss) − P(gain) is `loss`; see `tango.score`.
    """
    b, c = gained.astype(float), lost.astype(float)
    b2 = -b - c - (2 * n - b + c) * loss
    root = np.sqrt(np.maximum(b2 * b2 - 8 * n * c * loss * (1 + loss), 0.0))
    p_lost = np.clip((root - b2) / (4 * n), max(loss, 0.0), (1 + loss) / 2)
    expected = np.stack((p_lost - loss, p_lost, 1 - 2 * p_lost + loss)) * n
    seen = np.stack((b, c, n - b - c))
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = 2 * np.where(seen > 0, xlogy(seen, seen / expected), 0.0).sum(axis=0)
    return np.asarray(np.copysign(np.sqrt(np.maximum(deviance, 0.0)), b - c + n * loss))
