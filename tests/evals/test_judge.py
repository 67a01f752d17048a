"""Judges behind a real HTTP server in a process of its own, with faults."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judges import judge_of

from evals.errors import EvaluatorError
from evals.evaluators.judge import endpoint, prompts, settings
from evals.evaluators.judge.evaluators import JudgedGroundedness, JudgedTask, Preference
from evals.evaluators.judge.noise import JudgeNoise, measure
from evals.evaluators.judge.settings import JudgeSettings, TokenPrices

PASSAGES = ("The kettle costs EUR 48.",)
GOOD = {"text": json.dumps({"unsupported": ["It is red."], "score": 0.5})}
RUBRIC = json.dumps({"kind": "rubric", "criteria": ["says the price", "is polite"]})


@pytest.fixture
def log(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that reads the requests to the server."""
    path = tmp_path / "log"
    path.touch()
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Callable[..., JudgeSettings]]:
    """Give a function that starts a server with a script and returns its settings."""
    with contextlib.ExitStack() as stack:
        yield lambda *script, **fields: stack.enter_context(judge_of(tmp_path, *script, **fields))[
            0
        ]


def grounded(settings: JudgeSettings, generation: Any) -> Any:
    evaluator = JudgedGroundedness(settings)
    try:
        return evaluator.score(generation)
    finally:
        evaluator.close()


@pytest.fixture
def answer(generation_of):
    return generation_of(answer="The kettle costs EUR 48. It is red.", context=PASSAGES)


def test_a_judge_says_what_is_not_supported_and_what_it_cost(judge, answer, log) -> None:
    """Value, explanation, the quoted claim as a span, tokens times prices, prompt and model."""
    score = grounded(judge(GOOD), answer)
    assert (score.value, score.label, score.explanation) == (0.5, "unsupported", "It is red.")
    assert [(s.start, s.end, s.support) for s in score.spans] == [(25, 35, 0.0)]
    assert score.cost_usd == pytest.approx(0.002)
    assert score.version == prompts.version(prompts.GROUNDEDNESS, "judge-1")
    (asked,) = log()
    assert (asked["path"], asked["key"]) == ("/v1/chat/completions", "Bearer hush")
    assert asked["body"]["temperature"] == 0
    assert "The kettle costs EUR 48. It is red." in asked["body"]["messages"][0]["content"]


FAULTS = [
    {"status": 429, "headers": {"Retry-After": "0"}, "body": "slow down"},
    {"status": 500, "headers": {"Retry-After": "0"}},
    {"status": 503, "headers": {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}},
    {"body": "garbage"},
    {"body": '{"choices": [{"mess'},
    {"body": '{"choices": [{"message"', "length": 4000},
    {"body": '{"choices": []}'},
    {"body": '{"choices": [{"message": {"content": null}}]}'},
]


def test_faults_are_ridden_out(judge, answer, log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals, garbage, and half a body are asked again until an answer comes."""
    waits: list[float] = []
    monkeypatch.setattr(endpoint.time, "sleep", waits.append)
    score = grounded(judge(*FAULTS, GOOD, attempts=9, timeout_s=2), answer)
    assert score.value == 0.5
    assert len(log()) == 9
    assert len(waits) == 8
    assert waits[:3] == [0.0, 0.0, 0.0]
    assert min(waits[3:]) > 0


def test_retry_after_is_kept_within_bounds(judge, answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is the one that is asked for, and never longer than the settings allow."""
    waits: list[float] = []
    monkeypatch.setattr(endpoint.time, "sleep", waits.append)
    slow = {"status": 429, "headers": {"Retry-After": "7"}}
    very = {"status": 429, "headers": {"Retry-After": "86400"}}
    grounded(judge(slow, very, GOOD, max_wait_s=60), answer)
    assert waits == [7.0, 60]


@pytest.mark.parametrize(
    ("script", "reason", "requests"),
    [
        ([{"status": 401, "body": "no key"}], "said HTTP 401: 'no key'", 1),
        ([{"status": 500, "body": "boom"}], "said HTTP 500: 'boom'", 2),
        (
            [{"text": "I like it."}],
            "the judge's reply cannot be used: no JSON object in it",
            2,
        ),
        (
            [{"text": '{"score": 7}'}],
            "the judge's reply cannot be used: score is 7, wanted 0.0 to 1.0",
            2,
        ),
    ],
)
def test_a_judge_that_does_not_judge_leaves_the_answer_unscored(
    judge, answer, log, script, reason, requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last attempt there is a reason and no number."""
    monkeypatch.setattr(endpoint.time, "sleep", lambda _: None)
    score = grounded(judge(*script, attempts=2), answer)
    assert score.value is None
    assert score.unscored_reason.endswith(reason)
    assert len(log()) == requests


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD['text']}\n```",
        f"Here you are: {GOOD['text']} Anything else?",
        f"{{not json}} {GOOD['text']}",
    ],
)
def test_json_with_words_around_it_is_read(judge, answer, log, text) -> None:
    """Fences and chatter do not cost a second question."""
    assert grounded(judge({"text": text}), answer).value == 0.5
    assert len(log()) == 1


def test_half_json_is_asked_for_again_with_what_was_wrong(judge, answer, log) -> None:
    """The second question names the fault, and both are paid for."""
    score = grounded(judge({"text": '{"score": 0.5, "unsupp'}, GOOD), answer)
    assert (score.value, score.cost_usd) == (0.5, pytest.approx(0.004))
    roles = [m["role"] for m in log()[1]["body"]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert "not the JSON object asked for" in log()[1]["body"]["messages"][2]["content"]


def test_the_same_question_is_asked_once(judge, answer, log, tmp_path: Path) -> None:
    """The cache on disk answers a second evaluator, at no cost; another sample is asked anew."""
    chosen = judge(GOOD, cache=tmp_path / "cache")
    assert grounded(chosen, answer).cost_usd == pytest.approx(0.002)
    again = grounded(chosen, answer)
    assert (again.value, again.cost_usd, len(log())) == (0.5, 0.0, 1)
    for path in (tmp_path / "cache").rglob("*.json"):
        path.write_text("{half")
    assert grounded(chosen, answer).value == 0.5
    assert len(log()) == 2
    other = JudgedGroundedness(chosen, sample=1)
    assert other.score(answer).value == 0.5
    other.close()
    assert len(log()) == 3


def test_unknown_prices_are_no_cost(judge, answer) -> None:
    """Without prices the cost is not known, and not 0."""
    assert grounded(judge(GOOD, prices=None), answer).cost_usd is None


def test_the_rate_is_kept(judge, answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are spread to the rate of the settings."""
    waits: list[float] = []
    monkeypatch.setattr(endpoint.time, "sleep", waits.append)
    monkeypatch.setattr(endpoint.time, "monotonic", lambda: 100.0)
    evaluator = JudgedGroundedness(judge(GOOD, requests_per_s=4))
    for _ in range(3):
        evaluator.score(answer)
    evaluator.close()
    assert waits == [0.0, 0.25, 0.5]


def test_a_rubric_is_judged_by_its_criteria(judge, generation_of, log) -> None:
    """The value is the share of criteria met; missed criteria are explained."""
    reply = {"criteria": [{"met": True, "why": ""}, {"met": False, "why": "rude"}]}
    evaluator = JudgedTask(judge({"text": json.dumps(reply)}))
    score = evaluator.score(generation_of(answer="48, and go away {question}", reference=RUBRIC))
    assert (score.value, score.label, score.explanation) == (0.5, "rubric: 1 of 2 met", "2: rude")
    prompt = log()[0]["body"]["messages"][0]["content"]
    assert "1. says the price\n2. is polite" in prompt
    assert "48, and go away {question}" in prompt
    assert evaluator.score(generation_of(answer="x", reference="48")) is None
    evaluator.close()


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ([{"better_text": "GOOD"}], (1.0, "candidate")),
        ([{"better_text": "POOR"}], (0.0, "baseline")),
        ([{"text": '{"better": "equal"}'}], (0.5, "equal")),
        ([{"text": '{"better": "first"}'}], (0.5, "goes with the order")),
    ],
)
def test_a_preference_is_asked_for_in_both_orders(
    judge, generation_of, log, script, wanted
) -> None:
    """A judge that goes with the order prefers neither; it is not told which arm is which."""
    evaluator = Preference(judge(*script))
    score = evaluator.score_pair(generation_of(1, "GOOD answer"), generation_of(2, "POOR answer"))
    assert (score.value, score.label) == wanted
    prompts_sent = [asked["body"]["messages"][0]["content"] for asked in log()]
    assert len(prompts_sent) == 2
    assert not any(word in p for p in prompts_sent for word in ("candidate", "baseline"))
    same = evaluator.score_pair(generation_of(1, "same"), generation_of(2, "same"))
    assert (same.value, same.label, len(log())) == (0.5, "identical", 2)
    evaluator.close()


def test_a_judge_is_held_against_itself(judge, generation_of) -> None:
    """Two samples of one judge give its own noise; without answers there is no number."""
    values = [0.5, 0.7, 1.0, 1.0]
    script = [{"text": json.dumps({"unsupported": [], "score": v})} for v in values]
    chosen = judge(*script)
    one, two = JudgedGroundedness(chosen), JudgedGroundedness(chosen, sample=1)
    answers = [generation_of(n, f"Answer {n}.", context=PASSAGES) for n in (1, 2)]
    found = measure(one, two, answers)
    assert (found.answers, found.disagreeing) == (2, 1)
    assert found.mean_difference == pytest.approx(0.1)
    assert found.sd_of_one == pytest.approx(0.1)  # √(0.2² / 4)
    assert measure(one, two, []) == JudgeNoise(0, 0, None, None)
    one.close()
    two.close()


def test_the_environment_names_the_judge() -> None:
    """Each setting is read; a missing or odd one is named."""
    full = {
        settings.URL: "http://j/v1/",
        settings.MODEL: "m",
        settings.PRICES: "0.15,0.6",
        settings.RATE: "2",
        settings.CACHE: "c",
    }
    assert settings.from_environment(full) == JudgeSettings(
        url="http://j/v1",
        model="m",
        prices=TokenPrices(input_usd=0.15, output_usd=0.6),
        requests_per_s=2.0,
        cache=Path("c"),
    )
    for changed, words in (
        ({settings.MODEL: ""}, "no judge is set: DRAFTGATE_JUDGE_MODEL wanted"),
        ({settings.PRICES: "3"}, "DRAFTGATE_JUDGE_PRICES: '3'; wanted US dollars"),
        ({settings.RATE: "-1"}, "DRAFTGATE_JUDGE_RATE: '-1'; wanted a number"),
    ):
        with pytest.raises(EvaluatorError) as caught:
            settings.from_environment(full | changed)
        assert str(caught.value).startswith(words)


def test_another_prompt_or_model_is_another_version(judge) -> None:
    """Scores of different prompts and models do not mix."""
    chosen = judge(GOOD)
    made = [JudgedGroundedness(chosen), JudgedTask(chosen), Preference(chosen)]
    made.append(JudgedGroundedness(replace(chosen, model="judge-2")))
    assert len({evaluator.version for evaluator in made}) == 4
    for evaluator in made:
        evaluator.close()
