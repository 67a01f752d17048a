"""Errors that count whatever the forests predict."""

import numpy as np
import pytest
from grounding_passages import FACTS

from evals.evaluators.groundedness.checks import excess
from evals.evaluators.groundedness.features import read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of


def found(answer: str) -> list[bool]:
    """Return of which sentences a check says that they are wrong."""
    readings = read(answer, sentences_of(answer), indexed(FACTS), shipped().rarity)
    return np.isfinite(excess(readings)).tolist()


@pytest.mark.parametrize(
    ("answer", "is_error"),
    [
        ("The city library was founded in 1882 by Clara Hale.", False),
        ("The city library was founded in 1883 by Clara Hale.", True),
        ("The city library was founded in 1954 by Clara Hale.", False),
        ("The city library was founded in 1882 by Mill Hale.", True),
        ("The city library was not founded in 1882 by Clara Hale.", True),
        ("But the library does lend reference works.", True),
        ("But the library does lend reference works, not only novels.", False),
        (
            "Zebras queue nightly beside frozen harbours, humming quiet jazz melodies together.",
            True,
        ),
        ("Zebras queue nightly beside frozen harbours.", False),
    ],
)
def test_what_a_check_finds(answer, is_error) -> None:
    """Numbers and names that are not there, negations put in and left out, and another subject.

    A number of the passages in another one's place is left to the forests, and so is a negation
    that stands elsewhere in the sentence.
    """
    assert found(answer) == [is_error]


def test_a_check_flags_a_sentence_by_itself() -> None:
    """However little the forests make of it: above the shipped threshold."""
    text = "It moved to Mill Street in 1960."
    model = shipped()
    readings = read(text, sentences_of(text), indexed(FACTS), model.rarity)
    (above,) = excess(readings)
    assert above > 0
    for raw in (-9.0, 0.0):
        odds = model.calibration.checked(np.array([raw]), excess(readings))
        assert model.calibration.alone(odds)[0] > model.calibration.threshold
    unfound = model.calibration.checked(np.array([-9.0]), np.array([-np.inf]))
    assert unfound == -9.0
