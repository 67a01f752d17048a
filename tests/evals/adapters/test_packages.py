"""Ragas, DeepEval and Phoenix for real, each in an environment of its own (`make clients`)."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import client_environments
import pytest

from collector.client import Client
from collector.contract import Arm, Score
from demo.collector_process import running

pytestmark = pytest.mark.slow

SERVER = Path(__file__).resolve().parents[2] / "support" / "judge_server.py"
PASSAGES = ("Paris is the capital of France.",)
ANSWERS = ("Paris", "Lyon")
QUESTION = json.dumps(
    [{"role": "user", "parts": [{"type": "text", "content": "What is the capital of France?"}]}]
)
EXACT = {
    "deepeval": "deepeval:ExactMatchMetric",
    "phoenix": "phoenix:exact_match",
    "ragas": "ragas:ExactMatch",
}
JUDGED = {
    "deepeval": "deepeval:FaithfulnessMetric",
    "phoenix": "phoenix:FaithfulnessEvaluator",
    "ragas": "ragas:Faithfulness",
}
STATEMENT = {"statement": "It is Paris.", "reason": "stated", "verdict": 1}
REPLIES = {
    "deepeval": [
        {
            "truths": ["Paris."],
            "claims": ["Paris."],
            "verdicts": [{"verdict": "yes"}],
            "reason": "r",
        }
    ],
    "phoenix": [{"label": "faithful", "explanation": "r"}],
    "ragas": [{"statements": ["It is Paris."]}, {"statements": [STATEMENT]}] * 2,
}


@pytest.fixture
def url(tmp_path: Path, generation_of, otlp_of) -> Iterator[str]:
    """Serve a collector that holds two answers."""
    plain = [
        generation_of(n + 1, answer, reference="Paris", context=PASSAGES)
        for n, answer in enumerate(ANSWERS)
    ]
    made = [
        replace(
            one,
            content=replace(one.content, input_messages=QUESTION),
            rollout="k4",
            arm=Arm.CANDIDATE,
            prompt_id=f"p{n}",
            repeat=0,
        )
        for n, one in enumerate(plain)
    ]
    with running(tmp_path / "draftgate.db", tmp_path / "log") as served:
        with Client(served) as client:
            client.post_traces(otlp_of(made), content_type="application/json")
        yield served


@pytest.fixture
def evaluate(url: str, tmp_path: Path) -> Callable[..., list[Score]]:
    """Return a function that runs `draftgate evaluate` with a package installed, for its scores."""

    def run(package: str, evaluator: str, *options: str, **environment: str) -> list[Score]:
        words = ["-m", "draftgate", "evaluate", "k4", "--collector", url, *options]
        words += ["--evaluator", evaluator]
        done = subprocess.run(
            [str(python_of(package)), *words],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        # Ragas's client logs a refusal to stderr by itself.
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        with Client(url) as client:
            return list(client.scores("k4"))

    return run


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Callable[..., dict[str, str]]]:
    """Give a function that starts a judge with a script, and returns the settings that name it."""
    servers = []

    def start(script: list[dict[str, Any]]) -> dict[str, str]:
        server = subprocess.Popen(
            [sys.executable, str(SERVER), json.dumps(script), str(tmp_path / "asked")],
            stdout=subprocess.PIPE,
            text=True,
        )
        servers.append(server)
        return {
            "DRAFTGATE_JUDGE_URL": f"http://127.0.0.1:{server.stdout.readline().strip()}/v1",
            "DRAFTGATE_JUDGE_MODEL": "my-judge",
            "DRAFTGATE_JUDGE_PRICES": "1,2",
            "OPENAI_API_KEY": "not-for-this-url",
        }

    yield start
    for server in servers:
        server.kill()
        server.communicate()


def python_of(package: str) -> Path:
    """Return the interpreter that has the package; skip if it was not built."""
    python = client_environments.ready_python_of(package)
    if python is None:
        pytest.skip(f"no environment of {package}: tests/support/client_environments.py {package}")
    return python


@pytest.mark.parametrize("package", EXACT)
def test_a_metric_without_a_model_scores(package: str, evaluate) -> None:
    """A metric that compares texts scores a rollout from the command line."""
    first, second = evaluate(package, EXACT[package])
    assert (first.value, second.value) == (1.0, 0.0)
    assert first.evaluator == EXACT[package]
    assert first.metric == EXACT[package].replace(":", "_")
    assert f"{PINNED[package]}=={first.version}\n" in pins(package)
    assert (first.cost_usd, second.cost_usd) == (None, None)
    if package == "deepeval":
        assert second.explanation == "The actual and expected outputs are different."


@pytest.mark.parametrize("package", JUDGED)
def test_a_metric_asks_the_judge(package: str, evaluate, judge, tmp_path: Path) -> None:
    """A metric that asks a model asks the judge of the environment, answer after answer."""
    settings = judge([{"text": json.dumps(reply)} for reply in REPLIES[package]])
    first, second = evaluate(package, JUDGED[package], **settings)
    assert (first.value, second.value) == (1.0, 1.0)
    assert first.version.endswith("+my-judge")
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert {(one["key"], one["body"]["model"]) for one in asked} == {("Bearer none", "my-judge")}
    assert PASSAGES[0] in json.dumps([one["body"]["messages"] for one in asked])
    if package != "ragas":
        assert first.explanation == "r"
    # Each question takes 1000 tokens, each reply 100; the others do not say what they cost.
    cost = len(asked) / 2 * 1.2e-3 if package == "deepeval" else None
    assert first.cost_usd == pytest.approx(cost)


@pytest.mark.parametrize("package", JUDGED)
@pytest.mark.parametrize(
    "reply",
    [{"text": "[3]"}, {"body": '{"choices": []}'}, {"status": 401}],
    ids=["list", "empty", "refused"],
)
def test_a_judge_that_does_not_judge_leaves_unscored(package: str, reply, evaluate, judge) -> None:
    """What a package makes of an odd reply is a reason, whatever it raises."""
    scores = evaluate(package, JUDGED[package], **judge([reply]))
    assert [score.value for score in scores] == [None, None]
    assert all(s.unscored_reason.startswith(f"{JUDGED[package]} raised ") for s in scores)


def test_a_metric_stands_for_one_of_the_gates(evaluate) -> None:
    """A name after an equals sign scores the metric before it, as the evaluator that it is."""
    first, second = evaluate("phoenix", "task_completion=phoenix:exact_match")
    assert (first.metric, first.evaluator) == ("task_completion", "phoenix:exact_match")
    assert (first.value, second.value) == (1.0, 0.0)


def test_several_processes_make_a_metric_each(evaluate) -> None:
    """A metric is made of its name in every worker."""
    first, second = evaluate("deepeval", EXACT["deepeval"], "--workers", "2")
    assert (first.value, second.value) == (1.0, 0.0)


def test_what_a_name_cannot_say_is_told() -> None:
    """A metric that wants more than a name ends in an error; so does one where lower is better."""
    code = """
from evals.errors import EvaluatorError
from evals.evaluators import make
names = "MatchesRegex ToxicityEvaluator ToolSelectionEvaluator Nothing exact_match"
for name in names.split():
    try:
        print(make([f"phoenix:{name}"])[0].name)
    except EvaluatorError as exc:
        print(exc)
"""
    done = subprocess.run(
        [str(python_of("phoenix")), "-c", code],
        env=os.environ | {"DRAFTGATE_JUDGE_MODEL": "m", "OPENAI_API_KEY": "k"},
        capture_output=True,
        text=True,
        check=True,
    )
    pattern, toxicity, tools, nothing, exact = done.stdout.splitlines()
    assert "cannot be made without pattern" in pattern
    assert "its direction is minimize" in toxicity
    assert "wants available_tools, tool_selection, which is not recorded" in tools
    assert "no metric phoenix:Nothing; there are CompletenessEvaluator, " in nothing
    assert exact == "phoenix:exact_match"


def test_a_metric_of_ones_own_making_scores() -> None:
    """A metric that was made with settings becomes an evaluator that an entry point can name."""
    code = """
from deepeval.metrics import PatternMatchMetric
from evals.evaluators.adapters.deepeval import adapted
from evals.evaluators.function import is_evaluator
digits = adapted(PatternMatchMetric(pattern="[0-9]+"), name="digits")
print(is_evaluator(digits), digits.metric, sorted(digits.needs))
"""
    done = subprocess.run(
        [str(python_of("deepeval")), "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True digits []\n"


PINNED = {"deepeval": "deepeval", "phoenix": "arize-phoenix-evals", "ragas": "ragas"}


def pins(package: str) -> str:
    return (client_environments.METRICS / f"{package}.txt").read_text()
