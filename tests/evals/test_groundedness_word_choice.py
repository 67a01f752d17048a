"""How usual words are at their places, and what that tells of two sentences."""

import pytest

from evals.evaluators.groundedness import slots, word_choice
from evals.evaluators.groundedness.features import Values, WordIds
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of

PASSAGES = indexed(("The library lends books. The soup is ready.",))


def evidence(one: str, other: str) -> Values:
    """Return the features of a sentence beside another one."""
    ours, theirs = (
        WordIds(sentences_of(text)[0], PASSAGES, shipped().rarity) for text in (one, other)
    )
    return word_choice.evidence(slots.slots_of(ours, theirs), ours, theirs, shipped().choices)


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        ("It is important to note that some people are allergic to it.",
         "It is important to note that all people are allergic to it."),
        ("If the pain gets worse, you should see a doctor.",
         "If the pain gets worse, you might see a doctor."),
        ("Cook it until it is done.", "Cook it before it is done."),
        ("The answer is not mentioned in the text.", "The answer was not mentioned in the text."),
        ("The film was directed by Anna Berg.", "The film is directed by Anna Berg."),
        ("The recipe is called a stew.", "The recipe was called a stew."),
    ],
)  # fmt: skip
def test_english_tells_which_word_is_usual(usual: str, odd: str) -> None:
    """By the other words of the sentence; swapped sentences give the opposite."""
    found, swapped = evidence(usual, odd), evidence(odd, usual)
    assert found["places"] == swapped["places"] == 1
    assert found["more"] == -swapped["more"]
    assert found["least"] == -swapped["most"]
    assert found["more"] > 0


def test_several_places_count_together() -> None:
    """Their sum, and the worst of them."""
    found = evidence("Some books may be lent in May.", "All books will be lent in May.")
    assert found["places"] == 2
    assert found["least"] < found["more"] < 2 * found["most"]


@pytest.mark.parametrize(
    "other",
    [
        "The red book is heavy.",  # the same
        "The red box is heavy.",  # another noun
        "The red, thick book is heavy.",  # an adjective more
        "This red book is heavy.",  # another word that joins
    ],
)
def test_other_words_are_no_choice(other: str) -> None:
    """Nouns and adjectives are many: text does not tell which is usual."""
    assert evidence("The red book is heavy.", other)["places"] == 0


def test_training_learns_which_word_belongs_where() -> None:
    """It keeps what is common, and what weighs."""
    pytest.importorskip("sklearn", reason="training needs it")
    pytest.importorskip("torch", reason="training needs it")
    from evals.evaluators.groundedness.tokens import tokens_of
    from evals.evaluators.groundedness.word_odds import VOCABULARY, terms
    from training.groundedness.word_odds import Learner  # as above

    learner = Learner()
    texts = [f"Guests {n} may enter the hall. Staff {n} must enter the hall." for n in range(3000)]
    found = learner.fitted([[learner.places(text)] for text in texts])
    may, must = VOCABULARY.index("may"), VOCABULARY.index("must")
    for who, usual in (("Guests 4", may), ("Staff 4", must)):
        odds = found.of(terms(tokens_of(who), tokens_of("enter the hall")))
        assert odds.argmax() == usual
    assert "<4" not in found.terms
    assert "<12" not in found.terms
