"""Evaluators of other packages: found by entry points of really installed distributions."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evals.errors import EvaluatorError
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.scoring import Choice
from evals.evaluators import make, names

MODULE = '''
"""A stranger's evaluators."""
from evals.evaluators import Need, scored


def politeness(generation):
    """Say whether the answer says please."""
    return "please" in (generation.content.output_messages or "").lower()


def broken(generation):
    return 1 / 0


def too_much(generation):
    return 7


def with_context(generation):
    return 1.0


with_context.needs = {Need.CONTEXT}
with_context.metric = "context_used"


class Length:
    name, version, metric, needs = "length", "3", "short_enough", frozenset()

    def score(self, generation):
        return scored(self, generation, 1.0, label="short")

    def close(self):
        pass


nothing = 3
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a small distribution, built by pip, where this process looks."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "strangers_evaluators.py").write_text(MODULE)
    points = ("politeness", "broken", "too_much", "with_context", "nothing")
    lines = [f'{name} = "strangers_evaluators:{name}"' for name in points]
    lines += ['length = "strangers_evaluators:Length"', 'absent = "strangers_evaluators:no"']
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "strangers-evaluators"\nversion = "1.2"\n'
        '[project.entry-points."draftgate.evaluators"]\n' + "\n".join(lines)
        + '\n[tool.hatch.build.targets.wheel]\nonly-include = ["strangers_evaluators.py"]\n'
    )  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--target", str(target), str(source)],
        check=True,
    )  # fmt: skip
    monkeypatch.syspath_prepend(str(target))
    monkeypatch.delitem(sys.modules, "strangers_evaluators", raising=False)


@pytest.mark.usefixtures("installed")
def test_functions_and_classes_of_an_installed_package_score(
    client, generation_of, otlp_of
) -> None:
    """Each is asked for by name, signs its scores, and its faults stay its own."""
    assert {"politeness", "length", "format-drift"} <= set(names())
    answer = replace(generation_of(answer="Please wait."), rollout="k4", prompt_id="p", repeat=0)
    client.post_traces(otlp_of([answer]), content_type="application/json")
    chosen = Choice(names=("politeness", "length", "broken", "too_much", "with_context"))
    counts = evaluate_rollout(client, "k4", choice=chosen)
    assert (counts.scored, counts.unscored, counts.not_applicable) == (2, 2, 1)
    found = {
        s.evaluator: (s.metric, s.version, s.value, s.unscored_reason) for s in client.scores("k4")
    }
    assert found == {
        "politeness": ("politeness", "1.2", 1.0, None),
        "length": ("short_enough", "3", 1.0, None),
        "broken": ("broken", "1.2", None, "broken raised ZeroDivisionError: division by zero"),
        "too_much": ("too_much", "1.2", None, "too_much returned 7.0, wanted [0, 1]"),
    }


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no evaluator 'missing'; there are absent, broken, "),
        ("nothing", "evaluator 'nothing' (strangers_evaluators:nothing) is neither a function"),
        ("absent", "evaluator 'absent' (strangers_evaluators:no): module "),
    ],
)
def test_what_is_no_evaluator_is_refused(name: str, message: str) -> None:
    """An unknown name, a value and a broken entry point are told apart."""
    with pytest.raises(EvaluatorError) as caught:
        make([name])
    assert str(caught.value).startswith(message)
