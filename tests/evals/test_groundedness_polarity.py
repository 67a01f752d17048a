"""Evidence of the passages for a negation that only one of two sentences has."""

import pytest

from evals.evaluators.groundedness import polarity
from evals.evaluators.groundedness.features import Values, WordIds
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness.tokens import tokens_of

TEXT = """The glue lacks a solvent. Visitors are unable to park at the museum. The library lends
twelve books to members but never lends maps to guests. Dogs may enter the garden."""
PASSAGES = indexed((TEXT,))


def evidence(one: str, other: str) -> Values:
    """Return the features of a sentence beside another one."""
    ours, theirs = (
        WordIds(sentences_of(text)[0], PASSAGES, shipped().rarity) for text in (one, other)
    )
    stems = [{t.form.stem for t in words.tokens} for words in (ours, theirs)]
    only = [
        frozenset(at for at, t in enumerate(words.tokens) if t.form.stem not in others)
        for words, others in ((ours, stems[1]), (theirs, stems[0]))
    ]
    return polarity.evidence(ours, only[0], theirs, only[1], PASSAGES, shipped().choices)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("They never offer maps to guests.", "They always offer maps to guests."),
        ("The glue has no solvent.", "The glue has solvent."),
        ("Visitors cannot park at the museum.", "Visitors can park at the museum."),
        ("Members get twelve books.", "Members get no twelve books."),
        ("Dogs may enter the garden.", "Dogs may not enter the garden."),
    ],
)
def test_the_passages_say_which_is_right(right: str, wrong: str) -> None:
    """By a negative word of any kind before what is denied."""
    assert evidence(right, wrong)["agrees"] > 0 > evidence(wrong, right)["agrees"]


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        ("The library does not lend maps.", "The library can not lend maps."),
        ("It is not necessary.", "It is not located in Bonn."),
        ("You do not need a ticket.", "You may not need a ticket."),
    ],
)
def test_english_tells_where_a_negation_is_usual(usual: str, odd: str) -> None:
    """By the words on both sides of it."""
    found = []
    for text in (usual, odd):
        tokens = tokens_of(text)
        (at,) = (n for n, token in enumerate(tokens) if token.form.is_negator)
        found.append(shipped().choices.of_negation(tokens[:at], tokens[at + 1 :]))
    assert found[0] > found[1]


def test_do_without_a_negation_is_odd() -> None:
    """Whoever leaves the negation out leaves `does` behind."""
    right, wrong = "The library does not lend maps.", "The library does lend maps."
    assert evidence(right, wrong)["behind_do"] > 0 > evidence(wrong, right)["behind_do"]


def test_a_do_that_came_with_the_negation_says_nothing_for_it() -> None:
    """`does not include` is no likelier than `includes`, although `does include` is odd."""
    wrong, right = "The soup does not include eggs.", "The soup includes eggs."
    assert evidence(wrong, right)["behind_do"] == 0
    assert evidence(wrong, right)["fits"] < 0 < evidence(right, wrong)["fits"]
    assert evidence(wrong, "The soup does include eggs.")["fits"] > 0


def test_without_a_negation_there_is_no_evidence() -> None:
    """Nor if both have one."""
    one, other = "Dogs may enter the garden.", "Dogs may enter the museum."
    assert evidence(one, other)["agrees"] == polarity.NOTHING
