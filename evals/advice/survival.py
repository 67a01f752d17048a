"""Estimate the tokens that a verify step emits at each draft length, from summed counts."""

from dataclasses import dataclass

import numpy as np

from evals.evidence.columns import FloatColumn


@dataclass(frozen=True, slots=True)
class Survival:
    """Entry j − 1 of `probabilities` is S_j = P(accepted ≥ j), for j up to the logged k."""

    probabilities: tuple[float, ...]
    tail: float
    """P(next draft token accepted | all before it accepted), used beyond the logged k."""

    def tokens_a_step(self, k: int) -> float:
        """Return E(k) = 1 + Σ S_j for j ≤ k; beyond the logged k, S_j = S_{j−1} · tail."""
        logged = self.probabilities
        beyond = k - len(logged)
        expected = 1 + sum(logged[:k])
        last = logged[-1] if logged else 1.0
        return expected + sum(last * self.tail**j for j in range(1, beyond + 1))


def survival(steps: FloatColumn, accepted_per_pos: FloatColumn) -> Survival | None:
    """Return the survival of groups of steps, group i of draft length i + 1; `None` without steps.

    `accepted_per_pos[i, j]` counts the group's steps that accepted at least j + 1 tokens. S_j is
    estimated from the steps that drafted at least j tokens. The tail is
    â = ΣA/(ΣA + steps with A < k): the accepted share of the draft tokens that the target reached.
    The ratio accepted/drafted is not that probability and does not carry over to another k.

    Source: Y. Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023);
    censored geometric trials.
    """
    if steps.sum() <= 0:
        return None
    longest = int(np.flatnonzero(steps).max()) + 1
    reached = np.cumsum(steps[::-1])[::-1]
    probabilities = accepted_per_pos.sum(axis=0)[:longest] / reached[:longest]
    accepted = float(accepted_per_pos.sum())
    full = float(np.diagonal(accepted_per_pos).sum())
    tried = accepted + float(steps.sum()) - full
    return Survival(tuple(map(float, probabilities)), accepted / tried)
