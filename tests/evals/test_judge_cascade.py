"""A cascade asks the judge where the local model is unsure, and says for how many and the cost."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from judges import judge_of
from otlp_bodies import export_request
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, encode
from evals.cli.evaluate import app
from evals.errors import EvaluatorError
from evals.evaluators import Groundedness
from evals.evaluators.judge.cascade import JudgeCascade
from evals.evaluators.judge.settings import Cascade, cascade

PASSAGES = ("The kettle costs EUR 48. It holds two litres and is made of steel.",)
SURE = "The kettle costs EUR 48."
WRONG = "The kettle costs EUR 84."
CLEARED = {"text": json.dumps({"unsupported": [], "score": 1.0})}
REFUTED = {"text": json.dumps({"unsupported": ["EUR 48"], "score": 0.5})}
NEVER, ALWAYS = Cascade(low=1.0, high=1.0, audited=0.0), Cascade(low=0.0, high=1.0)


@pytest.fixture
def score(tmp_path) -> Any:
    """Return a function that scores with a judge of a script: the scores, and the questions."""

    def scored(terms: Cascade, reply: dict[str, Any], *answers: Any) -> Any:
        with judge_of(tmp_path, reply) as (settings, log):
            evaluator = JudgeCascade(settings, terms)
            try:
                if len(answers) == 1:
                    return [evaluator.score(answers[0])], log()
                one, other = answers
                both = [evaluator.score_beside(one, other), evaluator.score_beside(other, one)]
                return both, log()
            finally:
                evaluator.close()

    return scored


def test_what_the_local_model_is_sure_of_costs_nothing(score, generation_of) -> None:
    """The local score stands under the cascade's name, and the judge is not asked."""
    generation = generation_of(answer=SURE, context=PASSAGES)
    (found,), asked = score(Cascade(audited=0.0), REFUTED, generation)
    local = Groundedness().score(generation)
    assert asked == []
    assert found == replace(local, evaluator="judge-cascade", version=found.version)
    assert found.value > 0.95


@pytest.mark.parametrize(("reply", "value"), [(CLEARED, 1.0), (REFUTED, 0.0)])
def test_the_judge_settles_what_is_unsure(score, generation_of, reply, value) -> None:
    """Its verdict is the end of the local scale, with the local score and the cost beside it."""
    generation = generation_of(answer=SURE, context=PASSAGES)
    (found,), asked = score(ALWAYS, reply, generation)
    assert len(asked) == 1
    assert found.value == value
    assert found.label == f"unsure: judge says {'supported' if value else 'unsupported'}"
    assert found.explanation.startswith("local ")
    assert found.cost_usd == pytest.approx(0.002)


def test_both_answers_of_a_pair_are_asked_about_or_neither(score, generation_of) -> None:
    """If one is unsure and the other is not, both get the judge's verdict."""
    one, other = (
        generation_of(answer=f"{text} It is made of steel.", context=PASSAGES)
        for text in (SURE, WRONG)
    )
    locally = [Groundedness().score_beside(one, other), Groundedness().score_beside(other, one)]
    low, high = sorted(found.value for found in locally)
    assert high - low > 0.5
    only_one = Cascade(low=low, high=low, audited=0.0)
    found, asked = score(only_one, CLEARED, one, other)
    assert [each.value for each in found] == [1.0, 1.0]
    assert len(asked) == 2
    assert {each.version[-5:] for each in found} == {"+pair"}
    found, asked = score(NEVER, CLEARED, one, other)
    assert sorted(each.value for each in found) == [low, high]
    assert asked == []


def test_an_audit_asks_about_sure_answers_too(score, generation_of) -> None:
    """The label says whether the judge agrees; half of the texts are in an audit of one half."""
    generation = generation_of(answer=SURE, context=PASSAGES)
    (found,), _ = score(replace(NEVER, audited=1.0), CLEARED, generation)
    assert (found.value, found.label) == (1.0, "audit: judge agrees")
    (found,), _ = score(replace(NEVER, audited=1.0), REFUTED, generation)
    assert (found.value, found.label) == (0.0, "audit: judge disagrees")


def test_a_silent_judge_leaves_the_answer_unscored(score, generation_of) -> None:
    """The local score does not stand in, since the other answer of the pair may be judged."""
    generation = generation_of(answer=SURE, context=PASSAGES)
    (found,), _ = score(ALWAYS, {"status": 401, "body": "no key"}, generation)
    assert found.value is None
    assert "401" in found.unscored_reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DRAFTGATE_JUDGE_BAND", "0.5"),
        ("DRAFTGATE_JUDGE_BAND", "0.9,0.1"),
        ("DRAFTGATE_JUDGE_BAND", "0.1,2"),
        ("DRAFTGATE_JUDGE_AUDIT", "5"),
        ("DRAFTGATE_JUDGE_AUDIT", "often"),
    ],
)
def test_an_unusable_setting_is_named(name: str, value: str) -> None:
    """With what was wanted."""
    with pytest.raises(EvaluatorError, match=name):
        cascade({name: value})
    wanted = Cascade(low=0.2, high=0.8, audited=0.1)
    assert wanted == cascade({"DRAFTGATE_JUDGE_BAND": "0.2,0.8", "DRAFTGATE_JUDGE_AUDIT": "0.1"})


def test_the_command_says_the_share_asked_and_the_cost(
    tmp_path, generation_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 answers in ten pairs all are in the audit; the judge agrees on the supported ones."""
    database = f"sqlite:///{tmp_path / 'draftgate.db'}"
    made = [
        replace(
            generation_of(answer=f"{SURE} Guest {n} said so.", context=PASSAGES),
            trace_id=f"{n + 1:032x}", span_id=f"{n + 1:016x}", rollout="k4",
            prompt_id=str(n // 2), arm=Arm.CANDIDATE if n % 2 else Arm.BASELINE,
        )
        for n in range(4)
    ]  # fmt: skip
    with Client.local(database, capture_content=True) as client:
        client.post_traces(export_request(map(encode, made)).SerializeToString())
    with judge_of(tmp_path, CLEARED) as (settings, log):
        monkeypatch.setenv("DRAFTGATE_JUDGE_URL", settings.url)
        monkeypatch.setenv("DRAFTGATE_JUDGE_MODEL", "judge-1")
        monkeypatch.setenv("DRAFTGATE_JUDGE_PRICES", "1,10")
        monkeypatch.setenv("DRAFTGATE_JUDGE_BAND", "0,1")
        done = CliRunner().invoke(
            app, ["k4", "--evaluator", "judge-cascade", "--database", database]
        )
        assert len(log()) == 4
    assert done.exit_code == 0, done.output
    assert "4 scores posted" in done.output
    assert "judge asked for 4 (100.0%); cost US$ 0.0080" in done.output
