"""The looks that an until-decided run declared before its first pair."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evals.errors import EvidenceError

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DeclaredLooks:
    """At how many pairs each cohort is judged, and which look is the first to judge each pair."""

    first: Counts
    """By pair: its first look, from 1; 0 for a pair that no look judges."""
    pairs: Mapping[str, tuple[int, ...]]
    """By cohort: the pairs of each look, as many looks in every cohort; from one look to the next
    they may stay the same."""
    taken: Mapping[str, int]
    """By cohort: the looks of which every pair is complete; it is kept by `take`."""

    @property
    def count(self) -> int:
        """The number of looks."""
        return max(map(len, self.pairs.values()), default=0)

    def taken_in(self, cohorts: Iterable[str]) -> int:
        """Return the looks that all these cohorts have reached; 0 for no cohort."""
        return min((self.taken.get(cohort, 0) for cohort in cohorts), default=0)

    def sizes(self, cohorts: Iterable[str]) -> tuple[int, ...]:
        """Return the pairs of each look in all these cohorts together."""
        of = [self.pairs[cohort] for cohort in cohorts if cohort in self.pairs]
        return tuple(map(sum, zip(*of, strict=True)))

    def take(self, rows: NDArray[np.bool_]) -> "DeclaredLooks":
        """Return the looks of only these pairs."""
        return replace(self, first=self.first[rows])


def declared_looks(
    first: Counts, texts: Sequence[str | None], cohorts: Sequence[str], complete: NDArray[np.bool_]
) -> DeclaredLooks | None:
    """Return the looks that the pairs name; `None` if none does.

    `texts` has each pair's `draftgate.looks`, `cohorts` its cohort. Raises `EvidenceError` if pairs
    of a cohort name different looks, or unusable ones.
    """
    named = {
        (cohort, text) for cohort, text in zip(cohorts, texts, strict=True) if text is not None
    }
    if not named:
        return None
    pairs = dict[str, tuple[int, ...]]()
    for cohort, text in sorted(named):
        if cohort in pairs:
            raise EvidenceError(
                f"`{cohort}` has pairs of two runs with different declared looks; judge each run "
                "under a rollout name of its own"
            )
        pairs[cohort] = _parsed(text)
    if len({len(sizes) for sizes in pairs.values()}) > 1:
        raise EvidenceError("cohorts have different numbers of declared looks; wanted one number")
    known = np.array([text is not None for text in texts], dtype=np.bool_)
    first = np.where(known, first, 0)
    of = np.array(cohorts, dtype=np.object_)
    taken = {
        cohort: _taken(first[(of == cohort) & complete], sizes) for cohort, sizes in pairs.items()
    }
    return DeclaredLooks(first, pairs, taken)


def _taken(first: Counts, sizes: Sequence[int]) -> int:
    """Return the looks, from the first on, whose pairs are all there."""
    there = [int(((first > 0) & (first <= look)).sum()) for look in range(1, len(sizes) + 1)]
    lacking = (i for i, (n, size) in enumerate(zip(there, sizes, strict=True)) if n < size)
    return next(lacking, len(sizes))


def _parsed(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(one) for one in text.split())
    except ValueError as exc:
        raise _unusable(text) from exc
    if not sizes or sizes[0] < 0 or any(later < before for before, later in pairwise(sizes)):
        raise _unusable(text)
    return sizes


def _unusable(text: str) -> EvidenceError:
    return EvidenceError(f"draftgate.looks: wanted growing counts such as 40 80 120, got {text!r}")
