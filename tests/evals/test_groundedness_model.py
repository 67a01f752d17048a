"""The network beside the forests, as its user meets it: found, refused, and always the same."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from grounding_passages import FACTS, PASSAGES

from collector.client import Client
from collector.contract import Arm, Generation, Score
from evals.errors import EvaluatorError
from evals.evaluators import make, names
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness_model import GroundednessModel
from evals.evaluators.groundedness_model.network import Network

pytest.importorskip("onnxruntime", reason="an optional extra")
pytest.importorskip("tokenizers", reason="an optional extra")

GenerationOf = Callable[..., Generation]


@pytest.fixture(scope="module")
def evaluator() -> GroundednessModel:
    """Return one evaluator for the module: it takes a tenth of a second to load."""
    return GroundednessModel()


def score_of(
    evaluator: GroundednessModel,
    generation_of: GenerationOf,
    answer: str | None,
    context: tuple[str, ...],
) -> Score:
    score = evaluator.score(generation_of(answer=answer, context=context))
    assert score is not None
    return score


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("Ada Berg bought the Lumen kettle on 12 May for EUR 48.", PASSAGES),
        ("The parcel left Bonn on 3 June with Arrow and is due in Ghent on 9 June.", PASSAGES),
        ("Clara Hale founded the library in 1882, and it moved to Mill Street in 1954.", FACTS),
        ("The library holds 1.2 million books. Members can borrow 12 books at a time.", FACTS),
    ],
)
def test_what_the_passages_say_is_supported(evaluator, generation_of, answer, context) -> None:
    """Restated facts score above the threshold."""
    score = score_of(evaluator, generation_of, answer, context)
    assert score.label == "supported"
    assert score.value is not None
    assert score.value > 0.5


@pytest.mark.parametrize(
    ("answer", "context", "reason"),
    [
        (
            (
                "The library holds 1,200,000 books. It was designed by the architect Paul Stone, "
                "who won several awards for it."
            ),
            FACTS,
            "not in the passages",
        ),
        ("Ada Berg bought the Lumen kettle on 13 May for EUR 48.", PASSAGES, "13 not in"),
        (
            "Members can borrow twelve books at a time, but the library does lend reference works.",
            FACTS,
            "negated otherwise",
        ),
    ],
)
def test_what_the_passages_do_not_say_is_named(
    evaluator, generation_of, answer, context, reason
) -> None:
    """Something invented, a changed number and a negation left out are found and told."""
    score = score_of(evaluator, generation_of, answer, context)
    assert score.label == "unsupported"
    assert score.value is not None
    assert score.value < 0.5
    assert reason in (score.explanation or "")
    assert "; nearest: passage 1, " in (score.explanation or "")


def test_each_sentence_has_its_span_and_the_worst_decides(evaluator, generation_of) -> None:
    """Spans point at the sentences by character; the unsupported one has the least support."""
    good, bad = "Clara Hale founded the library in 1882.", "It holds 1,300,000 books."
    score = score_of(evaluator, generation_of, f"{good} {bad}", FACTS)
    assert score.spans is not None
    first, second = score.spans
    assert (first.start, first.end) == (0, len(good))
    assert (second.start, second.end) == (len(good) + 1, len(good) + 1 + len(bad))
    assert first.support is not None
    assert second.support is not None
    assert first.support > second.support
    assert score.label == "unsupported"


@pytest.mark.parametrize(
    ("answer", "context", "reason"),
    [
        ("Yes, 12.", (), "the passages are empty"),
        ("Yes, 12.", ("…",), "the passages have no words"),
        ("", PASSAGES, "the answer has no words"),
        (
            "Das Paket ist am 3. Juni in Bonn mit Arrow abgegangen und wird erwartet.",
            PASSAGES,
            "the answer is not in English, which this evaluator was trained and measured on",
        ),
    ],
)
def test_what_cannot_be_judged_has_a_reason(
    evaluator, generation_of, answer, context, reason
) -> None:
    """Never a number where nothing could be compared."""
    score = score_of(evaluator, generation_of, answer, context)
    assert (score.value, score.unscored_reason) == (None, reason)


def test_without_recorded_passages_there_is_no_score(evaluator, generation_of) -> None:
    """It does not apply where nothing was retrieved."""
    assert evaluator.score(generation_of(answer="Yes, 12.", context=None)) is None


def test_declining_claims_nothing(evaluator, generation_of) -> None:
    """A refusal is no hallucination."""
    score = score_of(evaluator, generation_of, "The passages do not mention a price.", PASSAGES)
    assert (score.value, score.label) == (1.0, "refusal")


def test_a_fact_is_found_anywhere_in_a_long_context(evaluator, generation_of) -> None:
    """At the start, the middle and the end of 15,000 words."""
    filler = "lorem ipsum dolor sit amet " * 1500
    answer = "Ada Berg bought the Lumen kettle on 12 May for EUR 48."
    for context in (
        (f"{PASSAGES[0]} {filler}{filler}",),
        (f"{filler}{PASSAGES[0]} {filler}",),
        (filler, filler, PASSAGES[0]),
    ):
        assert score_of(evaluator, generation_of, answer, context).label == "supported"


def test_a_long_answer_is_read_in_parts(evaluator, generation_of) -> None:
    """Every sentence of an answer far longer than the network reads at once has its support."""
    answer = "Ada Berg bought the Lumen kettle on 12 May. " * 100
    score = score_of(evaluator, generation_of, answer, PASSAGES)
    assert score.spans is not None
    assert len(score.spans) == 100
    assert all(span.support is not None and 0 <= span.support <= 1 for span in score.spans)


@pytest.mark.parametrize("answer", ["a" * 100_000, "1 " * 50_000, "Ada. " * 3000, "((((" * 9000])
def test_hostile_answers_do_not_raise(evaluator, generation_of, answer) -> None:
    """Endless words, numbers, sentences and brackets are scored or have a reason."""
    score = score_of(evaluator, generation_of, answer, PASSAGES)
    assert (score.value is None) == (score.unscored_reason is not None)


def test_the_same_answer_has_the_same_score(evaluator, generation_of) -> None:
    """In another evaluator, after other answers and contexts, to the last digit."""
    answers = ["Ada Berg bought the Lumen kettle.", "The parcel left Bonn on 9 May."]
    first = [score_of(evaluator, generation_of, a, PASSAGES) for a in answers]
    other = GroundednessModel()
    score_of(other, generation_of, "The library holds 1.2 million books.", FACTS)
    again = [score_of(other, generation_of, a, PASSAGES) for a in reversed(answers)]
    assert [s.value for s in first] == [s.value for s in reversed(again)]
    assert {s.version for s in (*first, *again)} == {evaluator.version}


def test_it_is_there_by_name_and_signs_with_its_weights() -> None:
    """The version changes with the weights' hash."""
    assert "groundedness-model" in names()
    (made,) = make(["groundedness-model"])
    assert (made.name, made.metric) == ("groundedness-model", "groundedness")
    version, _, weights = made.version.partition("+")
    assert version == "19"
    assert len(weights) == 12


def test_without_the_runtime_it_says_what_to_install() -> None:
    """The other evaluators are there all the same."""
    program = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from evals.errors import EvaluatorError\n"
        "from evals.evaluators import make\n"
        "make(['lexical-support'])\n"
        "try:\n    make(['groundedness-model'])\n"
        "except EvaluatorError as exc:\n    print(exc)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert "pip install 'draftgate[groundedness-model]'" in told


def test_without_its_weights_it_names_the_file(tmp_path) -> None:
    """A folder without the files is refused, not guessed around."""
    with pytest.raises(EvaluatorError, match=r"lower\.onnx: No such file"):
        Network(shipped().rarity, tmp_path)


def test_the_command_scores_a_rollout_with_it(url, generation_of, otlp_of) -> None:
    """`draftgate evaluate --evaluator groundedness-model`, by two processes."""
    answers = (
        "Ada Berg bought the Lumen kettle on 12 May.",
        "She paints seven frozen harbours at night.",
    )
    made = [
        replace(generation_of(at, answer, context=PASSAGES), rollout="k4", arm=Arm.CANDIDATE)
        for at, answer in enumerate(answers, 1)
    ]
    with Client(url) as client:
        client.post_traces(otlp_of(made), content_type="application/json")
        ended = subprocess.run(
            [sys.executable, "-m", "draftgate", "evaluate", "k4", "--collector", url,
             "--workers", "2", "--evaluator", "groundedness-model"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found = list(client.scores("k4"))
    assert ended.stdout.startswith("k4: 2 answers, 2 scores posted, 0 could not be judged")
    assert sorted(str(score.label) for score in found) == ["supported", "unsupported"]
    assert {score.evaluator for score in found} == {"groundedness-model"}
