"""Errors that count whatever the forests predict."""

import numpy as np
import pytest
from grounding_passages import FACTS
from scipy.special import expit, logit

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


SHOW = (
    (
        "The first prize went to Poland's Anna Harkowska. The hall in downtown Leeds was opened by "
        "Governor Mary Fallin. Star Mike Radja scored from an angle in the second period, and Mike "
        "Forney twice. Visit the Cafe Angouleme, where Rupert Murdoch dined. In the end "
        "marathon champion Smith outsprinted Jones. The tandem champions were Nansen and Lund."
    ),
)


@pytest.mark.parametrize(
    ("answer", "is_error"),
    [
        ("The first prize went to Anna Harkowska.", False),
        ("The first prize went to Mary Fallin.", True),
        ("The hall in downtown Leeds was opened by Gov. Mary Fallin.", False),
        ("The hall in downtown Leeds was opened by Mary Fallin.", False),
        ("The hall in downtown Leeds was opened by Texas Governor Mary Fallin.", False),
        ("The hall in downtown Murdoch was opened by Governor Mary Fallin.", True),
        ("Star Mike Forney scored from an angle in the second period.", False),
        ("Star Mike Harkowska scored from an angle in the second period.", True),
        ("Visit the Café Angoulême, where Rupert Murdoch dined.", False),
        ("In the end marathon champion Jones outsprinted Smith.", True),
        ("Star Radja Radja scored from an angle in the second period.", True),
        ("The tandem champions were Lund and Nansen.", False),
        ("Visit the Cafe Radja, where Rupert Murdoch dined.", True),
    ],
)
def test_a_name_is_exchanged_only_for_another(answer, is_error) -> None:
    """A name more or less is no exchange, nor is a short form, an accent or a list's order."""
    readings = read(answer, sentences_of(answer), indexed(SHOW), shipped().rarity)
    assert np.isfinite(excess(readings)).tolist() == [is_error]


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


@pytest.mark.parametrize("sentences", [1, 12, 100])
def test_a_check_flags_an_answer_of_any_length(sentences) -> None:
    """The correction for length takes nothing from what a check found."""
    calibration, excesses = shipped().calibration, np.full(sentences, -np.inf)
    excesses[0], raw, answer = 0.5, np.full(sentences, -9.0), np.zeros(sentences, dtype=np.int64)
    odds = calibration.of_checked(calibration.checked(raw, excesses), excesses, answer, 1)
    assert calibration.probability(odds)[0] == pytest.approx(
        expit(logit(calibration.threshold) + 0.5)
    )


NUMBERED = (
    """Passage 1: The kettle costs EUR 48 and holds two litres.
Passage 2: It is made of steel, and its handle is made of wood.""",
)


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("The kettle costs EUR 48 (passage 1).", []),
        ("The kettle costs EUR 48 (passage 5).", [5]),
        ("Passages 1 and 4 say that it is made of steel.", [4]),
        ("According to passage 1, 10 people said that it is made of steel.", []),
        ("It is made of steel, as article 5 of the law demands.", []),
        ("It is made of steel [3].", []),
    ],
)
def test_a_cited_passage_must_exist(answer, missing) -> None:
    """Only a number that can be nothing else than a passage's counts."""
    (reading,) = read(answer, sentences_of(answer), indexed(NUMBERED), shipped().rarity)
    assert list(reading.missing_passages) == missing
    if missing:
        assert excess([reading])[0] > 0


def test_one_unnumbered_passage_can_be_cited_by_any_number() -> None:
    """The numbers may be those of a list that the prompt shows otherwise."""
    answer = "The kettle costs EUR 48 (passage 5)."
    context = ("[5] The kettle costs EUR 48.",)
    (reading,) = read(answer, sentences_of(answer), indexed(context), shipped().rarity)
    assert reading.missing_passages == ()


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("More than 300 people come.", []),
        ("Over 300 people come.", []),
        ("No fewer than 300 people come.", []),
        ("Fewer than 300 people come.", [("Fewer than 300", "at least this")]),
        ("Up to 300 people come.", [("Up to 300", "at least this")]),
        ("At least 9 rooms are open.", [("At least 9", "at most this")]),
        ("It does not take fewer than 300 people.", []),
        ("It takes more than 20 minutes.", []),
        ("It takes less than 20 minutes.", []),
        ("It is under 7 miles away.", []),
    ],
)
def test_a_number_keeps_its_bound(answer, wrong) -> None:
    """The opposite one is wrong only if the passages give the number one everywhere."""
    context = (
        """More than 300 people come each day. No more than 9 rooms are open. It takes 20 minutes,
        or over 20 minutes. It cannot be over 7 miles away.""",
    )
    (reading,) = read(answer, sentences_of(answer), indexed(context), shipped().rarity)
    assert list(reading.other_bounds) == wrong
    assert np.isfinite(excess([reading])[0]) == bool(wrong)


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("The kettle costs €48.", [("€48", "dollar")]),
        ("The kettle costs 48 dollars.", []),
        ("The water boils after 5 hours at 100°C.", [("5 hours", "minute")]),
        ("The water boils after 5 minutes at 100 degrees.", []),
        ("It is filled in the 20s.", []),
        ("It was sold for 30 years.", []),
    ],
)
def test_a_number_keeps_its_unit(answer, wrong) -> None:
    """Another unit is wrong only if the passages give the number one everywhere."""
    context = (
        """The kettle costs $48. Water boils at 100°C after 5 minutes. It holds 20 cups. Of 30
        customers all were content.""",
    )
    (reading,) = read(answer, sentences_of(answer), indexed(context), shipped().rarity)
    assert list(reading.other_units) == wrong
    assert np.isfinite(excess([reading])[0]) == bool(wrong)
