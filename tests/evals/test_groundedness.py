"""Groundedness at its public interface: findings, explanations, and unscored answers."""

from collections.abc import Callable

import numpy as np
import pytest
from grounding_passages import FACTS, PASSAGES

from collector.contract import Generation, Score
from evals.evaluators import Groundedness
from evals.evaluators.groundedness.forest import Forest
from evals.evaluators.groundedness.judgement import indexed, judge
from evals.evaluators.groundedness.tokens import tokens_of

GenerationOf = Callable[..., Generation]


def score_of(generation_of: GenerationOf, answer: str, context: tuple[str, ...]) -> Score:
    score = Groundedness().score(generation_of(answer=answer, context=context))
    assert score is not None
    return score


def value(generation_of: GenerationOf, answer: str, context: tuple[str, ...]) -> float:
    found = score_of(generation_of, answer, context).value
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("Ada Berg bought the Lumen kettle on 12 May for EUR 48.", PASSAGES),
        ("The parcel left Bonn on 3 June with Arrow and is due in Ghent on 9 June.", PASSAGES),
        ("Clara Hale founded the library in 1882, and it moved to Mill Street in 1954.", FACTS),
        ("The library holds 1.2 million books. Members can borrow 12 books at a time.", FACTS),
        ("The library lends about 25 percent of its books each year.", FACTS),
    ],
)
def test_what_the_passages_say_is_supported(generation_of, answer, context) -> None:
    """Restated facts score above the threshold, however their numbers are written."""
    score = score_of(generation_of, answer, context)
    assert score.label == "supported"
    assert score.value is not None
    assert score.value > 0.5


@pytest.mark.parametrize(
    ("answer", "context", "reason"),
    [
        ("Ada Berg bought the Lumen kettle on 13 May for EUR 48.", PASSAGES, "13 not in"),
        ("The library holds 1.3 million books.", FACTS, "1.3 million not in the passages"),
        (
            "Members can borrow twelve books at a time, but the library does lend reference works.",
            FACTS,
            "negated otherwise",
        ),
        (
            (
                "The reading room opens at 9 and closes at 20 on weekdays, and entry is not free "
                "for residents."
            ),
            FACTS,
            "negated otherwise",
        ),
        (
            "The city library was founded in 1882 by Clara Hale and moved to Mill Street in 1960.",
            FACTS,
            "1960 not in the passages",
        ),
        (
            (
                "The reading room opens at 9 and closes at 20 on weekdays. It also serves lunches "
                "cooked by volunteers in a converted railway carriage at 13."
            ),
            FACTS,
            "13 not in the passages",
        ),
    ],
)
def test_what_the_passages_do_not_say_is_named(generation_of, answer, context, reason) -> None:
    """A changed number, and a negation put in or left out, cost the score and are told."""
    score = score_of(generation_of, answer, context)
    assert score.label == "unsupported"
    assert score.value is not None
    assert score.value < 0.5
    assert reason in (score.explanation or "")
    assert "; nearest: passage 1, " in (score.explanation or "")


def test_each_sentence_has_its_span_and_the_worst_decides(generation_of) -> None:
    """Spans point at the sentences by character; the unsupported one has the least support."""
    good = "Clara Hale founded the library in 1882."
    bad = "It holds 1,300,000 books."
    score = score_of(generation_of, f"{good} {bad}", FACTS)
    assert score.spans is not None
    first, second = score.spans
    assert (first.start, first.end) == (0, len(good))
    assert (second.start, second.end) == (len(good) + 1, len(good) + 1 + len(bad))
    assert first.support is not None
    assert second.support is not None
    assert first.support > second.support
    assert score.value == value(generation_of, bad, FACTS) or score.value < 0.5


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot answer that from the notes.",
        "The passages do not mention a price.",
        "Unable to answer based on given passages.",
        "The passages don’t mention a price.",
        "Unable\u00a0to  answer based on given passages.",
    ],
)
def test_declining_claims_nothing(generation_of, answer) -> None:
    """A refusal is no hallucination."""
    score = score_of(generation_of, answer, PASSAGES)
    assert (score.value, score.label, score.explanation) == (1.0, "refusal", "declines to answer")


@pytest.mark.parametrize(
    ("answer", "context", "reason"),
    [
        ("Yes, 12.", (), "the passages are empty"),
        ("Yes, 12.", ("  ",), "the passages are empty"),
        ("Yes, 12.", ("…",), "the passages have no words"),
        ("", PASSAGES, "the answer has no words"),
        ("\x00\x07 …", PASSAGES, "the answer has no words"),
        (
            "Das Paket ist am 3. Juni in Bonn mit Arrow abgegangen und wird erwartet.",
            PASSAGES,
            "the answer is not in English, which this evaluator was trained and measured on",
        ),
        (
            "包裹于六月三日离开波恩。",
            PASSAGES,
            "the answer is not in English, which this evaluator was trained and measured on",
        ),
        (
            "Yes.",
            ("word " * 250_000,),
            "the passages have 1,250,000 characters, more than 1,000,000",
        ),
    ],
)
def test_what_cannot_be_judged_has_a_reason(generation_of, answer, context, reason) -> None:
    """Never a number where nothing could be compared."""
    score = score_of(generation_of, answer, context)
    assert (score.value, score.unscored_reason) == (None, reason)


def test_a_fact_is_found_anywhere_in_a_long_context(generation_of) -> None:
    """At the start, the middle and the end of 15,000 words, and over several passages."""
    filler = "lorem ipsum dolor sit amet " * 1500
    answer = "Ada Berg bought the Lumen kettle on 12 May for EUR 48."
    for context in (
        (f"{PASSAGES[0]} {filler}{filler}",),
        (f"{filler}{PASSAGES[0]} {filler}",),
        (filler, filler, PASSAGES[0]),
    ):
        assert value(generation_of, answer, context) > 0.5


@pytest.mark.parametrize(
    "answer",
    [
        "a" * 10_000_000,
        "á" * 10_000_000,
        "1 " * 5_000_000,
        "Ada. " * 2_000_000,
        "\n" * 10_000_000,
        "((((" * 10**6,
    ],
)
def test_ten_megabytes_are_judged_by_their_beginning(generation_of, answer) -> None:
    """A hostile answer neither raises nor is read in full, and says so."""
    score = score_of(generation_of, answer, PASSAGES)
    if score.value is not None and score.label != "refusal":
        assert "judged by its first 50,000 characters" in (score.explanation or "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000", "one thousand"),
        ("1000.0", "1000"),
        ("1.5 million", "1,500,000"),
        ("twenty-five", "25"),
        ("twenty five %", "25 percent"),
        ("$5k", "$5,000"),
        ("3rd", "3 rd"),
        ("Jan 3", "January 3"),
        ("can’t", "can't"),
    ],
)
def test_one_number_or_word_has_one_form(one, other) -> None:
    """Ways to write the same are the same."""
    forms = [[t.form.stem for t in tokens_of(text)] for text in (one, other)]
    assert forms[0] == forms[1]


def test_an_index_serves_every_answer_on_its_passages() -> None:
    """Answers on the same passages share one index, and order does not matter."""
    indexed.clear()
    answers = ["Ada Berg bought the Lumen kettle.", "The parcel left Bonn on 9 May."]
    there = [judge(a, indexed(PASSAGES)) for a in answers]
    back = [judge(a, indexed(tuple(PASSAGES))) for a in reversed(answers)]
    assert [j.value for j in there if j] == [j.value for j in reversed(back) if j]
    assert indexed.built == 1


def test_the_trees_are_the_trained_ones() -> None:
    """The copy of a fitted booster gives its log-odds, in the precision of the file."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    fit = pytest.importorskip("training.groundedness.fit")
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(600, 5))
    label = rows[:, 0] * rows[:, 1] + rng.normal(size=600) > 0
    forest = fit._boosted(20, rows, label)
    booster = ensemble.HistGradientBoostingClassifier(max_iter=20, **fit._BOOSTING)
    wanted = booster.fit(rows, label).decision_function(rows)
    assert np.allclose(forest.log_odds(rows), wanted, atol=1e-5)


def test_several_draws_count_by_their_mean() -> None:
    """A forest fitted with other columns drawn each time says the mean of what each says."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    fit = pytest.importorskip("training.groundedness.fit")
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(600, 5))
    label = rows[:, 0] * rows[:, 1] + rng.normal(size=600) > 0
    each = [
        ensemble.HistGradientBoostingClassifier(
            max_iter=20, **(fit._BOOSTING | {"random_state": draw})
        )
        .fit(rows, label)
        .decision_function(rows)
        for draw in range(3)
    ]
    assert not np.allclose(each[0], each[1], atol=1e-2)
    forest = fit._boosted(20, rows, label, draws=3)
    assert np.allclose(forest.log_odds(rows), np.mean(each, axis=0), atol=1e-5)


def test_a_tree_that_is_one_leaf_and_a_tree_too_large() -> None:
    """A leaf alone gives its value; more leaves than the evaluation holds are refused."""
    none, one = np.zeros(1, dtype=np.int32), np.zeros(1)
    leaf = Forest(none, one, none, none, np.array([0.25]), none, base=1.0)
    assert leaf.log_odds(np.array([[3.0], [np.nan]])).tolist() == [1.25, 1.25]
    # Seventeen leaves in a row: each split's right side is the next split.
    splits = np.arange(16)
    left = np.concatenate([17 + splits, [16], 17 + splits]).astype(np.int32)
    right = np.concatenate([splits + 1, [16], 17 + splits]).astype(np.int32)
    zeros = np.zeros(len(left))
    with pytest.raises(ValueError, match="a tree of 17 leaves; wanted at most 16"):
        Forest(zeros.astype(np.int32), zeros, left, right, zeros, none, base=0.0)
