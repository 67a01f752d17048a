"""What of a prompt is the question, and what its words say of an answer's."""

import pytest
from grounding_passages import FACTS

from evals.evaluators.groundedness.features import Values, read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.question import question_of
from evals.evaluators.groundedness.sentences import sentences_of

QUESTION = "Who founded the library in 1882?"
STEMS = {"found", "librari", "1882"}


@pytest.mark.parametrize(
    "prompt",
    [
        QUESTION,
        f"{FACTS[0]}\n\n{QUESTION}",
        f"Answer briefly, and by the passages alone.\nQuestion: {QUESTION}\nAnswer:",
        f"Answer the following question:\n{QUESTION}\nThe passages:\n{FACTS[0]}\noutput:",
        f"Question: What is the capital of Peru?\nLima.\nquery : {QUESTION}",
    ],
)
def test_the_question_is_found_in_a_prompt(prompt) -> None:
    """Without the passages, the instructions around it, and the examples before it."""
    assert question_of(prompt, FACTS).stems == STEMS


@pytest.mark.parametrize(
    "prompt", ["", "?!", " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(50))]
)
def test_what_is_no_question_stays_unknown(prompt) -> None:
    """An empty prompt, and a long one without a labelled question."""
    assert question_of(prompt, FACTS).stems == frozenset()


def test_the_numbers_of_the_whole_prompt_are_known() -> None:
    """Whatever of it the question is."""
    assert question_of(f"As of 2024.\nQuestion: {QUESTION}", ()).numbers == {"2024", "1882"}


def test_an_empty_passage_takes_nothing_from_a_prompt() -> None:
    """Blank texts are no part of it."""
    assert question_of(QUESTION, ("", " \n")).stems == STEMS


def test_a_long_prompt_is_read_from_its_end() -> None:
    """A conversation of megabytes costs no more than its last 20,000 characters."""
    assert question_of("lorem " * 500_000 + f"\nQuestion: {QUESTION}", ()).stems == STEMS


def measured(answer: str, question: str) -> Values:
    readings = read(
        answer, sentences_of(answer), indexed(FACTS), shipped().rarity, question=question
    )
    (reading,) = readings
    return reading.values


def test_words_of_the_question_are_told_from_invented_ones() -> None:
    """Neither the passages nor the question have `zebra`; `Windows` is asked for."""
    answer = "The library runs on Windows beside a zebra in Oslo."
    known = measured(answer, "Does the library run on Windows?")
    assert (known["asked_absent"], known["names_unasked"]) == (2, 1)
    assert known["asked_share"] == 1
    assert 0 < known["question_held"] < 1
    unknown = measured(answer, "")
    assert (unknown["asked_absent"], unknown["names_unasked"]) == (0, 2)
    assert (unknown["asked_share"], unknown["question_held"]) == (-1, -1)
    assert unknown["unasked_mass"] == unknown["absent_mass"] > known["unasked_mass"]
    assert unknown["unasked_max"] >= known["unasked_max"] > 0


def test_numbers_without_an_explanation_are_counted() -> None:
    """Those of the question are explained."""
    answer = "It moved to Mill Street in 1987 and in 1999."
    assert measured(answer, "")["numbers_unexplained"] == 2
    assert measured(answer, "Did it move in 1999?")["numbers_unexplained"] == 1
    assert measured(answer, "Did it move in 1999?")["answer_unexplained"] == 1
