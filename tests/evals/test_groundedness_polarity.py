"""Evidence of the passages for a negation that only one of two sentences has."""

import pytest

from evals.evaluators.groundedness import polarity
from evals.evaluators.groundedness.features import Values, WordIds
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of

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
    return polarity.evidence(ours, only[0], theirs, only[1], PASSAGES)


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


def test_without_a_negation_there_is_no_evidence() -> None:
    """Nor if both have one."""
    one, other = "Dogs may enter the garden.", "Dogs may enter the museum."
    assert evidence(one, other)["agrees"] == polarity.NOTHING
