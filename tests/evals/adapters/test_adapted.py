"""Adapters of other packages' metrics, without the packages: their errors and results."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evals.errors import EvaluatorError
from evals.evaluators import Need, make
from evals.evaluators.adapters.adapted import AdaptedMetric, MetricInputs, MetricResult
from evals.evaluators.adapters.model import ModelEndpoint, from_environment
from evals.evaluators.judge.settings import TokenPrices


def by(judge: Callable[[MetricInputs], MetricResult], *needs: Need) -> AdaptedMetric:
    return AdaptedMetric(judge, name="ragas:Test", version="1.2", needs=frozenset(needs))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("ragas:ExactMatch", 'pip install "ragas>=0.4"'),
        ("deepeval:ExactMatchMetric", 'pip install "deepeval>=4.3"'),
        ("task_completion=phoenix:exact_match", 'pip install "arize-phoenix-evals>=3.0"'),
    ],
)
def test_an_absent_package_is_named_with_its_command(name: str, command: str) -> None:
    """A metric of a package that is not installed ends in an error that says how to install it."""
    with pytest.raises(EvaluatorError, match=f"is not installed.*{command}"):
        make([name])


def test_an_old_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version from before the interface that is used is named, with the one that is wanted."""
    facts = tmp_path / "deepeval-3.9.7.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: deepeval\nVersion: 3.9.7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EvaluatorError, match=r"deepeval 3\.9\.7 is installed, wanted 4\.3 or"):
        make(["deepeval:ExactMatchMetric"])


def test_an_unknown_name_lists_the_packages_too() -> None:
    """The names that there are end with what can stand before a metric of another package."""
    with pytest.raises(EvaluatorError, match="deepeval:METRIC, phoenix:METRIC, ragas:METRIC"):
        make(["trulens:Groundedness"])


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        (0.25, 0.25),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (1 + 2e-16, 1.0),
        (1.0000001, 1.0),
        (-1e-9, 0.0),
    ],
)
def test_a_number_in_the_range_is_stored(said: object, stored: float, generation_of) -> None:
    """A number in [0, 1] is the value; what lies outside by rounding alone is the range's end."""
    score = by(lambda _: MetricResult(value=said, label="l", explanation="e", cost_usd=0.01)).score(
        generation_of(1, "An answer.")
    )
    assert (score.value, score.label, score.explanation) == (stored, "l", "e")
    assert (score.evaluator, score.version, score.metric) == ("ragas:Test", "1.2", "ragas_Test")
    assert score.cost_usd == 0.01


@pytest.mark.parametrize("said", [1.01, -0.5, math.nan, math.inf, None, "0.5", [1.0, 0.0]])
def test_what_is_no_number_in_the_range_is_unscored(said: object, generation_of) -> None:
    """Anything else leaves the answer without a value, with what was said and why as the reason."""
    score = by(lambda _: MetricResult(value=said, explanation="no claims", cost_usd=0.01)).score(
        generation_of(1, "An answer.")
    )
    assert score.value is None
    assert (
        score.unscored_reason == f"ragas:Test gave {said!r}, wanted a number in [0, 1]: no claims"
    )
    assert score.cost_usd == 0.01


def test_what_the_package_raises_is_the_reason(generation_of) -> None:
    """An exception from within other code leaves the answer unscored."""
    score = by(lambda texts: MetricResult(value=json.loads(texts.answer))).score(
        generation_of(1, "no JSON")
    )
    assert score.unscored_reason == (
        "ragas:Test raised JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    )


def test_a_fault_of_draftgates_own_is_raised(generation_of) -> None:
    """An exception that Draftgate's own code raises is never stored as a reason."""
    own: dict[str, object] = {"__name__": "evals.evaluators.adapters.ragas"}
    exec("def judge(texts): return texts.no_such_text", own)  # noqa: S102  # a frame of that module
    with pytest.raises(AttributeError, match="no_such_text"):
        by(own["judge"]).score(generation_of(1, "An answer."))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reference", "seen"),
    [
        ("Paris", "Paris"),
        (json.dumps({"kind": "exact", "text": "Paris"}), "Paris"),
        (json.dumps({"kind": "qa", "answers": ["Paris"]}), "Paris"),
        (json.dumps({"kind": "qa", "answers": ["Paris", "Lutetia"]}), None),
        (json.dumps({"kind": "rubric", "criteria": ["polite"]}), None),
        (json.dumps({"kind": "unknown"}), None),
        (None, None),
    ],
)
def test_a_reference_counts_where_it_is_one_text(reference, seen, generation_of) -> None:
    """A metric that compares with a text says nothing of an answer that has no one such text."""
    shown: list[MetricInputs] = []
    metric = by(lambda texts: shown.append(texts) or MetricResult(value=1), Need.REFERENCE)
    score = metric.score(generation_of(1, "Paris", reference=reference))
    assert (score is None) == (seen is None)
    assert [texts.reference for texts in shown] == ([] if seen is None else [seen])


def test_closing_twice_releases_once() -> None:
    """What a metric opened is released once."""
    released: list[None] = []
    metric = AdaptedMetric(
        lambda _: MetricResult(value=1),
        name="ragas:Test",
        version="1",
        needs=frozenset(),
        close=lambda: released.append(None),
    )
    metric.close()
    metric.close()
    assert len(released) == 1


def test_the_model_is_the_judges() -> None:
    """The judge's variables name the model; OPENAI_API_KEY is never sent to its URL."""
    named = {
        "DRAFTGATE_JUDGE_MODEL": "m",
        "DRAFTGATE_JUDGE_URL": "http://localhost:8000/v1",
        "DRAFTGATE_JUDGE_PRICES": "0.15,0.6",
        "OPENAI_API_KEY": "secret",
    }
    model = from_environment(named)
    assert model == ModelEndpoint(
        name="m",
        url="http://localhost:8000/v1",
        api_key=None,
        prices=TokenPrices(input_usd=0.15, output_usd=0.6),
    )
    assert model.client_options() == {"base_url": "http://localhost:8000/v1", "api_key": "none"}
    without_url = from_environment({"DRAFTGATE_JUDGE_MODEL": "m"})
    assert without_url is not None
    assert without_url.client_options() == {}  # the client's own variables count
    assert from_environment({"OPENAI_API_KEY": "secret"}) is None
