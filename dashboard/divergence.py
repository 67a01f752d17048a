"""Find where two answers diverge."""

from typing import NamedTuple


class Divergence(NamedTuple):
    """Two texts split at the first character that differs."""

    common: str
    """The prefix that both share."""
    baseline_rest: str
    candidate_rest: str

    @property
    def identical(self) -> bool:
        """Whether the texts are equal."""
        return not self.baseline_rest and not self.candidate_rest


def divergence(baseline: str, candidate: str) -> Divergence:
    """Split two texts after their longest common prefix."""
    at = 0
    for ours, theirs in zip(baseline, candidate, strict=False):
        if ours != theirs:
            break
        at += 1
    return Divergence(baseline[:at], baseline[at:], candidate[at:])
