"""Explicit checks of a sentence, whose findings override the forests."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.features import SentenceReading
from evals.evaluators.groundedness.hearsay import HEARSAY
from evals.evaluators.groundedness.plain import plain

ABSENT = 0.69
"""For a number, or a cited passage, that does not exist, and for a wrong calculation."""
CONTRADICTION = 0.49
"""Log-odds above the threshold that a sentence gets at least, if a check finds it wrong."""
_STRANGE_WORDS = 8
"""A sentence with at least this many content words, none of them in the passages, is wrong."""
_LEAST_STRENGTH = {"splice_added_negation": 8.0, "splice_antonym": 8.0, "splice_name": 10.0}
"""Strength of the copied words around an exchanged word above which the exchange is an error.

Exchanged numbers are not checked: annotators accept most of what looks like one, and the forests
have that feature too.
"""
_LEFT_OUT = 8.0
"""The same for a negation left out, if the sentence has no other negation."""


def excess(readings: Sequence[SentenceReading]) -> NDArray[np.float64]:
    """Return each sentence's minimum log-odds above the threshold; −∞ if no check found anything.

    `readings` are all of one answer.

    The checks are needed because the forests learned from long answers, in which few numbers are
    wrong: an unexplained number that no passage contains must count all the same.
    """
    declines = any(reading.sentence.is_refusal for reading in readings)
    found = [
        max(_excess(reading), CONTRADICTION if declines and _is_hearsay(reading) else -np.inf)
        for reading in readings
    ]
    return np.array(found, dtype=np.float64)


def _excess(reading: SentenceReading) -> float:
    if reading.unexplained or reading.missing_passages or reading.miscalculated:
        return ABSENT
    values = reading.values
    spliced = any(values[name] > least for name, least in _LEAST_STRENGTH.items())
    affirmed = values["splice_dropped_negation"] > _LEFT_OUT and not values["negators"]
    contradicts = spliced or affirmed or reading.other_units or reading.other_bounds
    return CONTRADICTION if contradicts or _is_strange(reading) else -np.inf


def _is_hearsay(reading: SentenceReading) -> bool:
    """Return whether a sentence says what unnamed others say, in words that no passage has.

    Beside "the passages do not say", such a sentence admits that it comes from elsewhere.
    """
    sentence = reading.sentence
    match = HEARSAY.search(plain(sentence.text))
    if match is None or sentence.is_refusal:
        return False
    start, end = sentence.start + match.start(), sentence.start + match.end()
    return any(token.end <= start or token.start >= end for token in reading.absent)


def _is_strange(reading: SentenceReading) -> bool:
    """Return whether a sentence about the subject shares no word with the passages."""
    values = reading.values
    return (
        values["content_words"] >= _STRANGE_WORDS
        and values["pairs_share"] == 0
        and values["absent_words_share"] == 1
        and not values["about_passages"]
        and not values["refusal"]
    )
