"""The network's word and the forests', weighed into one probability."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evals.evaluators.groundedness.model import Model, any_of, sharpened

Floats = NDArray[np.float64]
_CORRUPTION_SHIFT = 2.0


def of_forests(model: Model, rows: Floats) -> Floats:
    """Return what is weighed of the forests: each sentence's log-odds by two of them.

    The network was weighed against these two, before there was one of marked contradictions.
    """
    corrupted = model.corruption.log_odds(rows) - _CORRUPTION_SHIFT
    return any_of(model.invention.log_odds(rows), corrupted)


@dataclass(frozen=True, slots=True)
class Blend:
    """How much each counts, and from which probability on an answer counts as unsupported."""

    forests: float
    network: float
    intercept: float
    threshold: float

    def probability(self, forests: Floats, network: Floats, excess: Floats) -> Floats:
        """Return the calibrated probability of each sentence.

        `excess` is how far above the threshold the checks put a sentence at the least, in
        log-odds; what they found counts whatever the network says.
        """
        odds = self.forests * forests + self.network * network + self.intercept
        return np.asarray(expit(np.maximum(odds, logit(self.threshold) + excess)))

    def value(self, probability: float) -> float:
        """Return the score of an unsupported sentence's probability: 0.5 at the threshold."""
        return sharpened(probability, self.threshold)
