"""Evidence of the passages for the words in which two sentences differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.evaluators.groundedness import slots
from evals.evaluators.groundedness.features import Values, WordIds
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of

TEXT = """Let the soup stand for 5 minutes before serving. Wash the herbs after picking them. The
photo should not be resized for the printer. Anna Berg wrote the recipe and Olga Lind drew it."""
PASSAGES = indexed((TEXT,))


def evidence(one: str, other: str) -> Values:
    """Return the features of a sentence beside another one."""
    ours, theirs = (
        WordIds(sentences_of(text)[0], PASSAGES, shipped().rarity) for text in (one, other)
    )
    return slots.evidence(slots.slots_of(ours, theirs), ours, theirs, PASSAGES)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Let it stand for 5 minutes before serving.", "Let it stand for 5 minutes after serving."),
        ("Let it stand for 5 minutes.", "Let it stand for 5 herbs."),
        ("Anna Berg wrote the recipe.", "Anna Lind wrote the recipe."),
    ],
)
def test_the_word_beside_the_shared_ones_has_more_evidence(right: str, wrong: str) -> None:
    """Both words are in the passages, one of them near the sentence's other words."""
    assert evidence(right, wrong)["more"] > 0 > evidence(wrong, right)["more"]


def test_a_negation_agrees_with_the_place_of_the_shared_words() -> None:
    """Left out or put in."""
    kept, dropped = "The photo should not be resized.", "The photo should be resized."
    assert evidence(kept, dropped)["agrees"] > 0 > evidence(dropped, kept)["agrees"]
    put_in, plain = "The soup must never stand.", "The soup must stand."
    assert evidence(put_in, plain)["agrees"] < 0 < evidence(plain, put_in)["agrees"]


def test_without_shared_words_there_is_no_evidence() -> None:
    """Nor between equal sentences."""
    assert set(evidence("Zebras sing.", "Tigers dance.").values()) == {slots.NOTHING}
    assert set(evidence("Anna wrote.", "Anna wrote.").values()) == {slots.NOTHING}


WORDS = st.lists(
    st.sampled_from(["soup", "stand", "before", "after", "not", "Anna", "wrote", "5"]), min_size=1
)


@given(WORDS, WORDS)
def test_swapped_sentences_have_the_same_differences(one: list[str], other: list[str]) -> None:
    """A side has evidence for words exactly if the other side has it against them."""
    here, there = evidence(" ".join(one), " ".join(other)), evidence(" ".join(other), " ".join(one))
    assert (one == other) <= (here == there == dict.fromkeys(slots.NAMES, slots.NOTHING))
    if min(here["anchored"], there["anchored"]) > slots.NOTHING and not (set(one) & set(other)):
        pytest.fail("without a shared word there is no anchor")
