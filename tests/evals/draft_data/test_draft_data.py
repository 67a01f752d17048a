"""The prompts with the lowest acceptance, in the form that drafts are retrained from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from collector.client import Client
from collector.contract import Arm, Content, Generation, Speculation
from draftgate.commands import app
from evals.draft_data.conversation import NoConversationError, conversation, tools

SECOND = 10**9


def generation(
    number: int, accepted: int, *, arm: Arm = Arm.CANDIDATE, **changed: Any
) -> Generation:
    """Return an answer of which so many of 40 draft tokens were accepted."""
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"question {number}"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": f"answer {number}"}]}]
    fields = {
        "trace_id": f"{number + 1:032x}",
        "span_id": f"{(number + 1) * 10 + (arm is Arm.CANDIDATE):016x}",
        "start_unix_ns": 10**18 + number * SECOND,
        "end_unix_ns": 10**18 + (number + 1) * SECOND,
        "rollout": "k4",
        "arm": arm,
        "cohort": "chat",
        "prompt_id": f"p{number}",
        "repeat": 0,
        "output_tokens": 60,
        "speculation": Speculation(
            method="draft_model", steps=10, draft_tokens=40, accepted_tokens=accepted
        ),
        "content": Content(input_messages=json.dumps(asked), output_messages=json.dumps(said)),
    }
    return Generation(**(fields | changed))


Export = Callable[..., Result]


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Give a function that stores answers and exports the hardest."""

    def run(answers: list[Generation], *words: str, capture: bool = True) -> Result:
        url = f"sqlite:///{tmp_path / 'd.db'}"
        with Client.local(url, capture_content=capture) as client:
            client.post_generations(answers)
        to = tmp_path / "hardest.jsonl"
        command = ["acceptance", "export", "k4", "--to", str(to), "--database", url, *words]
        return CliRunner().invoke(app, command)

    return run


def lines(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "hardest.jsonl").read_text().splitlines()]


def test_the_least_accepted_come_first(export: Export, tmp_path: Path) -> None:
    """As conversations, with the candidate's answers, and no more than asked for."""
    answers = [generation(n, accepted) for n, accepted in enumerate((30, 5, 20, 10))]
    found = export(answers, "--prompts", "3")
    assert found.exit_code == 0, found.output
    assert "3 of 4 prompts, acceptance 0.125 to 0.500" in found.stdout
    assert [one["id"] for one in lines(tmp_path)] == ["p1", "p3", "p2"]
    assert lines(tmp_path)[0]["conversations"] == [
        {"role": "user", "content": "question 1"},
        {"role": "assistant", "content": "answer 1"},
    ]


def test_repeats_are_one_prompt(export: Export, tmp_path: Path) -> None:
    """By the sums of their counts, not by the mean of their rates."""
    again = generation(0, 36, repeat=1, span_id="f" * 16)
    found = export([generation(0, 0), again, generation(1, 16)])
    assert "acceptance 0.400 to 0.450" in found.stdout
    assert [one["id"] for one in lines(tmp_path)] == ["p1", "p0"]


@pytest.mark.parametrize(
    "changed",
    [
        {"error_type": "timeout"},
        {"fallback": True},
        {"arm": Arm.BASELINE},
        {"speculation": None},
        {"speculation": Speculation(method="d", steps=2, draft_tokens=40, accepted_tokens=50)},
        {"speculation": Speculation(method="d", steps=2, draft_tokens=8, accepted_tokens=0)},
        {
            "speculation": Speculation(
                method="d", steps=10, draft_tokens=40, accepted_tokens=0, lossless=False
            )
        },
        {"cohort": "rag"},
    ],
)
def test_what_says_nothing_of_the_draft_is_left_out(
    export: Export, tmp_path: Path, changed: dict[str, Any]
) -> None:
    """Failures, others' answers, broken counts, few drafts, lossy answers, other cohorts."""
    arm = changed.pop("arm", Arm.CANDIDATE)
    export([generation(0, 20), generation(1, 0, arm=arm, **changed)], "--cohort", "chat")
    assert [one["id"] for one in lines(tmp_path)] == ["p0"]


def test_without_text_it_says_what_to_do(export: Export, tmp_path: Path) -> None:
    """And writes no file."""
    found = export([generation(0, 5)], capture=False)
    assert found.exit_code == 2
    assert "1 × its text is not stored" in found.stderr
    assert "--capture-content" in found.stderr
    assert not (tmp_path / "hardest.jsonl").exists()


def test_redacted_text_trains_nothing(export: Export, tmp_path: Path) -> None:
    """A draft would learn the placeholder."""
    asked = [{"role": "user", "parts": [{"type": "text", "content": "I am jo@example.com"}]}]
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "hi"}]}])
    content = Content(input_messages=json.dumps(asked), output_messages=said)
    found = export([generation(0, 5), generation(1, 0, content=content)])
    assert "left out: 1 × its text is redacted" in found.stderr
    assert [one["id"] for one in lines(tmp_path)] == ["p0"]


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--below", "0.01"], "an acceptance of at most 0.01"), (["--cohort", "x"], "none of the")],
)
def test_nothing_chosen_is_one_line(export: Export, words: list[str], said: str) -> None:
    found = export([generation(0, 5)], *words)
    assert found.exit_code == 2
    assert said in found.stderr


def test_an_existing_file_is_kept(export: Export, tmp_path: Path) -> None:
    """Unless it may be replaced."""
    (tmp_path / "hardest.jsonl").write_text("mine")
    assert export([generation(0, 5)]).exit_code == 2
    assert export([generation(0, 5)], "--force").exit_code == 0


def test_tools_and_reasoning_are_kept() -> None:
    """In the chat-completions form: calls, their results, and the thought before them."""
    asked = [
        {"role": "developer", "parts": [{"type": "text", "content": "be brief"}]},
        {"role": "user", "parts": [{"type": "text", "content": "weather?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "w", "arguments": {"at": "Rome"}}],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": {"t": 20}}],
        },
    ]
    parts = [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "20 degrees"}]
    said = [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]
    function = {"name": "w", "arguments": '{"at": "Rome"}'}
    assert conversation(json.dumps(asked), json.dumps(said)) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"t": 20}'},
        {"role": "assistant", "content": "20 degrees", "reasoning_content": "hm"},
    ]
    flat = json.dumps([{"type": "function", "name": "w", "parameters": {}}])
    assert json.loads(tools(flat) or "") == [
        {"type": "function", "function": {"name": "w", "parameters": {}}}
    ]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([{"type": "blob", "modality": "image"}], "no text"),
        ([{"type": "text", "content": ""}], "no answer"),
        ([], "no answer"),
    ],
)
def test_what_is_no_conversation(parts: list[Any], said: str) -> None:
    """Images, and empty answers."""
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x"}]}])
    with pytest.raises(NoConversationError, match=said):
        conversation(asked, json.dumps([{"role": "assistant", "parts": parts}]))
