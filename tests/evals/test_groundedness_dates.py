"""Dates in digits, in either order, and words in their inflected forms."""

from datetime import date

import pytest
from grounding_passages import unexplained_numbers as numbers
from hypothesis import given
from hypothesis import strategies as st

from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.tokens import tokens_of

WRITTEN = ("The fee was paid on March 5, 2014.",)
IN_DIGITS = ("The fee was paid on 05/03/2014.",)


@pytest.mark.parametrize(
    "date",
    ["05/03/2014", "03/05/2014", "5.3.2014", "2014/03/05", "2014-03-05", "5-3-2014", "3/5/14",
     "the 5th of March 2014"],
)  # fmt: skip
def test_a_date_in_digits_is_the_written_one(date: str) -> None:
    """Day and month may stand in either order, but beside a year in front."""
    assert numbers(f"The fee was paid on {date}.", WRITTEN) == []


@pytest.mark.parametrize("date", ["March 5, 2014", "May 3, 2014", "2014-05-03", "3 May 2014"])
def test_a_passages_date_of_either_order_is_read_both_ways(date: str) -> None:
    """The answer decides which."""
    assert numbers(f"The fee was paid on {date}.", IN_DIGITS) == []


@pytest.mark.parametrize(
    ("date", "context"),
    [
        ("06/03/2014", WRITTEN),
        ("2014-05-03", WRITTEN),
        ("05/04/2014", WRITTEN),
        ("2014-10-05", WRITTEN),
        ("5 October 2014", WRITTEN),
        ("May 5, 2014", IN_DIGITS),
    ],
)
def test_another_date_is_another_one(date: str, context: tuple[str]) -> None:
    """Whatever the order."""
    assert numbers(f"The fee was paid on {date}.", context)


@given(st.dates(min_value=date(1000, 1, 1), max_value=date(2999, 12, 31)))
def test_every_date_is_one(when: date) -> None:
    """December and May, too."""
    spelled = tokens_of(f"{when:%B} {when.day}, {when.year}")
    for digits in (f"{when:%Y-%m-%d}", f"{when.month}/{when.day}/{when.year}"):
        assert [t.form for t in tokens_of(digits)] == [t.form for t in spelled]


@pytest.mark.parametrize(
    "forms",
    [
        "city cities", "teacher teachers teach", "use uses used using", "offer offered offering",
        "question questions", "operation operations operated operate", "stop stopped stopping",
        "agree agreed agrees agreeing", "class classes", "family families", "high highest",
        "meter meters", "speed speeds speeding", "create creation created", "carry carried carries",
    ],
)  # fmt: skip
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    """Plurals, tenses, and common derived forms."""
    assert len({stem(word) for word in forms.split()}) == 1


@pytest.mark.parametrize("words", ["string strung", "bed bing", "news never", "hundred hunger"])
def test_other_words_have_other_stems(words: str) -> None:
    """Endings that are none stay."""
    assert len({stem(word) for word in words.split()}) == 2


@given(st.text(alphabet="abcdeginrsty", min_size=1, max_size=12))
def test_a_stem_is_never_empty(word: str) -> None:
    """Of any letters."""
    assert stem(word)
