"""How many tokens to draft: always k, by how many texts there are, or by how they fare."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine_adapter.engines.acceptance_counts import VerifyStep

_DECAY = 0.95
_PRIOR_TRIED, _PRIOR_KEPT = 4.0, 3.0
"""Before the first step acceptance is taken for ¾, as firmly as after four tokens."""


class DraftLength(Protocol):
    """Decides k from step to step."""

    k_max: int

    def begin(self, texts: int) -> None:
        """Hear of a new batch of so many texts."""
        ...

    def k(self) -> int:
        """Return the k of the next step."""
        ...

    def after(self, steps: Sequence[VerifyStep]) -> None:
        """Hear what became of a step's drafts, a text each."""
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
    """k by the texts of a batch: the entry of the largest number that is not above theirs.

    It stays the same until the batch is done: a draft's cache could not follow steps without it.
    """

    def __init__(self, by_texts: Mapping[int, int]) -> None:
        if 1 not in by_texts:
            raise ValueError("by_texts: wanted a k for 1 text, too")
        self.k_max = max(by_texts.values())
        self._by_texts = dict(sorted(by_texts.items()))
        self._now = self.k_max

    def begin(self, texts: int) -> None:
        """Look its k up."""
        self._now = [k for least, k in self._by_texts.items() if least <= texts][-1]

    def k(self) -> int:
        """Return the batch's k."""
        return self._now

    def after(self, steps: Sequence[VerifyStep]) -> None:
        """Do nothing."""


class Adaptive:
    """The k from 1 on that promises the most tokens a second, by the acceptance seen lately.

    With a the share of the draft tokens reached that were kept, a step emits 1 + a + … + a^k
    tokens and costs 1 + k·c verify passes. Older steps count less, by 5 % a step. It depends on
    the texts alone and on no clock, so that a run can be repeated.
    """

    def __init__(self, k_max: int, draft_cost: float) -> None:
        """`draft_cost` is c: a draft token's cost as a share of a verify pass."""
        self.k_max = k_max
        self._cost = draft_cost
        self.begin(1)

    def begin(self, texts: int) -> None:
        """Forget."""
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
        """Add what was reached and kept; raises `ValueError` for trees, which are no chain of k."""
        if any(step.levels is not None for step in steps):
            raise ValueError("adaptive: wanted drafts that are chains, got trees of a fixed size")
        tried = sum(min(step.accepted + 1, step.proposed) for step in steps)
        self._tried = self._tried * _DECAY + tried
        self._kept = self._kept * _DECAY + sum(step.accepted for step in steps)
