"""Choose the number of draft tokens k: fixed, by batch size, or by recent acceptance."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine_adapter.engines.acceptance_counts import VerifyStep

_DECAY = 0.95
_PRIOR_TRIED, _PRIOR_KEPT = 4.0, 3.0
"""Prior of the acceptance rate: 3 of 4 tokens accepted."""


class DraftLength(Protocol):
    """Chooses k for each step."""

    k_max: int

    def begin(self, texts: int) -> None:
        """Start a new batch of `texts` texts."""
        ...

    def k(self) -> int:
        """Return the k of the next step."""
        ...

    def after(self, steps: Sequence[VerifyStep]) -> None:
        """Take the results of a step, one per text."""
        ...


class Fixed:
    """Always k."""

    def __init__(self, k: int) -> None:
        self.k_max = k

    def begin(self, texts: int) -> None:
        """Do nothing."""

    def k(self) -> int:
        """Return k."""
        return self.k_max

    def after(self, steps: Sequence[VerifyStep]) -> None:
        """Do nothing."""


class ByBatch:
    """k by batch size: the entry with the largest key that does not exceed it.

    k is constant for a batch: steps with k = 0 would leave gaps in a draft model's cache.
    """

    def __init__(self, by_texts: Mapping[int, int]) -> None:
        if 1 not in by_texts:
            raise ValueError("by_texts: wanted a k for 1 text, too")
        self.k_max = max(by_texts.values())
        self._by_texts = dict(sorted(by_texts.items()))
        self._now = self.k_max

    def begin(self, texts: int) -> None:
        """Look up the batch's k."""
        self._now = [k for least, k in self._by_texts.items() if least <= texts][-1]

    def k(self) -> int:
        """Return the batch's k."""
        return self._now

    def after(self, steps: Sequence[VerifyStep]) -> None:
        """Do nothing."""


class Adaptive:
    """The k ≥ 1 with the highest expected tokens per second at the recent acceptance rate.

    With a the share of tested draft tokens that were accepted, a step emits 1 + a + … + a^k tokens
    and costs 1 + k·c verify passes. The weight of older steps decays by 5 % per step. k depends
    only on the texts, not on a clock, so a run is repeatable.
    """

    def __init__(self, k_max: int, draft_cost: float) -> None:
        """Set c, `draft_cost`: a draft token's cost as a share of a verify pass."""
        self.k_max = k_max
        self._cost = draft_cost
        self.begin(1)

    def begin(self, texts: int) -> None:
        """Reset the acceptance rate to the prior."""
        del texts
        self._tried, self._kept = _PRIOR_TRIED, _PRIOR_KEPT

    def k(self) -> int:
        """Return the best k."""
        a = self._kept / self._tried
        tokens, best, best_rate = 1.0, 1, 0.0
        for k in range(1, self.k_max + 1):
            tokens += a**k
            rate = tokens / (1 + k * self._cost)
            if rate > best_rate:
                best, best_rate = k, rate
        return best

    def after(self, steps: Sequence[VerifyStep]) -> None:
        """Update the acceptance rate; raises `ValueError` for trees."""
        if any(step.levels is not None for step in steps):
            raise ValueError("adaptive: wanted drafts that are chains, got trees of a fixed size")
        tried = sum(min(step.accepted + 1, step.proposed) for step in steps)
        self._tried = self._tried * _DECAY + tried
        self._kept = self._kept * _DECAY + sum(step.accepted for step in steps)
