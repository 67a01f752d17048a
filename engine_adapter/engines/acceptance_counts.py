"""Sum verify steps to the contract's speculation counts; the single place that does so."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from collector.contract import Speculation


class VerifyStep(NamedTuple):
    """One forward pass of the target that checked draft tokens."""

    proposed: int
    accepted: int
    """Leading draft tokens that the answer kept; at most `proposed`, or a tree's `levels`."""
    levels: int | None = None
    """If the draft was a tree, the number of tokens on a path; `None` for a chain."""

    @property
    def longest(self) -> int:
        """The largest number of draft tokens that the step could have accepted."""
        return self.proposed if self.levels is None else self.levels


class SpeculationCounts(NamedTuple):
    """Sums over a generation's verify steps, as in `collector.contract.Speculation`."""

    steps: int
    draft_tokens: int
    accepted_tokens: int
    draft_tokens_per_pos: tuple[int, ...] | None
    """`None` if any draft was a tree, which has several tokens per position."""
    accepted_tokens_per_pos: tuple[int, ...]
    acceptance_histogram: tuple[int, ...]

    def apply(self, configured: Speculation, source: str) -> Speculation:
        """Return the configured speculation with these counts and their source."""
        return replace(configured, source=source, **self._asdict())


def count(steps: Sequence[VerifyStep]) -> SpeculationCounts:
    """Sum the steps that proposed at least one token; other steps verify nothing.

    The lists are as long as the longest draft, and empty if nothing was drafted. Zero steps are
    a measurement (prompt lookup found no match), not an absent value.
    """
    verified = [step for step in steps if step.proposed > 0]
    width = max((step.longest for step in verified), default=0)
    chains = all(step.levels is None for step in verified)
    return SpeculationCounts(
        steps=len(verified),
        draft_tokens=sum(step.proposed for step in verified),
        accepted_tokens=sum(step.accepted for step in verified),
        draft_tokens_per_pos=tuple(
            sum(step.proposed > position for step in verified) for position in range(width)
        )
        if chains
        else None,
        accepted_tokens_per_pos=tuple(
            sum(step.accepted > position for step in verified) for position in range(width)
        ),
        acceptance_histogram=tuple(
            sum(step.accepted == length for step in verified) for length in range(width + 1)
        )
        if verified
        else (),
    )


def accepted_per_position(histogram: Sequence[int]) -> tuple[int, ...]:
    """Return how many steps accepted at least 1, 2, … tokens; `histogram[j]`: exactly j."""
    return tuple(accumulate(reversed(histogram[1:])))[::-1]
