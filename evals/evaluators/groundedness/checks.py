"""Explicit checks of a sentence: what counts against it whatever the forests say."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.features import Reading

ABSENT_NUMBER = 0.69
CONTRADICTION = 0.49
"""Log-odds by which a sentence that a check found wrong stands above the threshold, by itself."""
_STRANGE_WORDS = 8
"""From so many content words on, a sentence that shares none with the passages is an error."""
_LEAST_STRENGTH = {"splice_added_negation": 8.0, "splice_antonym": 8.0, "splice_name": 10.0}
"""How much must be copied around a word before its exchange is an error by itself.

A number of the passages in another one's place is none: people accept most of what looks so, and
the forests see it.
"""
_LEFT_OUT = 8.0
"""As much around a negation that is left out, where the sentence has none of its own elsewhere."""


def excess(readings: Sequence[Reading]) -> NDArray[np.float64]:
    """Return how far above the threshold each sentence stands at the least, in log-odds.

    −∞ where no check found anything. The forests learned from long answers, in which few numbers
    are wrong; a number that no passage holds, and that nothing explains, counts all the same.
    """
    return np.array([_excess(reading) for reading in readings], dtype=np.float64)


def _excess(reading: Reading) -> float:
    if reading.unexplained:
        return ABSENT_NUMBER
    values = reading.values
    spliced = any(values[name] > least for name, least in _LEAST_STRENGTH.items())
    affirmed = values["splice_dropped_negation"] > _LEFT_OUT and not values["negators"]
    return CONTRADICTION if spliced or affirmed or _is_strange(reading) else -np.inf


def _is_strange(reading: Reading) -> bool:
    """Say whether a sentence about the subject has no word of the passages."""
    values = reading.values
    return (
        values["content_words"] >= _STRANGE_WORDS
        and values["pairs_share"] == 0
        and values["absent_words_share"] == 1
        and not values["about_passages"]
        and not values["refusal"]
    )
