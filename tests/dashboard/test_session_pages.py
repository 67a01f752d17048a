"""A session on the pages of pairs and traces: turn by turn, of both arms."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from otlp_bodies import export_request
from page_running import rollout, shown

from collector.client import Client
from collector.contract import Arm, Content, Generation, Span, encode
from dashboard import source
from dashboard.sections import session_view

NS = 10**9


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close what the pages opened."""
    yield
    source.client.clear()


def said(*texts: str) -> str:
    roles = ("user", "assistant") * len(texts)
    return json.dumps(
        [
            {"role": role, "parts": [{"type": "text", "content": text}]}
            for role, text in zip(roles, texts, strict=False)
        ]
    )


def turn(number: int, arm: Arm, *, own: bool) -> Generation:
    """Return a turn; the answer to the first differs by arm, and stands in own histories."""
    answers = [f"{arm} first", f"{arm} second"]
    history = ["<b>hello</b>", answers[0] if own else "recorded", "and now?"]
    end = number == 2
    return Generation(
        trace_id=f"{list(Arm).index(arm) + 1:032x}",
        span_id=f"{number:016x}",
        start_unix_ns=number * NS,
        end_unix_ns=number * NS + NS // 2,
        rollout="r",
        arm=arm,
        cohort="chat",
        prompt_id="s/2" if end else None if own else "s/1",
        repeat=0 if end or not own else None,
        conversation_id="s",
        turn=number,
        own_history=own or None,
        output_tokens=3,
        content=Content(
            input_messages=said(*history[: 2 * number - 1]),
            output_messages=json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": answers[number - 1]}]}]
            ),
        ),
    )


def spans(*, own: bool, turns: tuple[int, ...] = (1, 2)) -> list[Span]:
    return [encode(turn(number, arm, own=own)) for arm in Arm for number in turns]


def database(folder: Path, sent: list[Span]) -> str:
    url = f"sqlite:///{folder}/sessions.db"
    with Client.local(url, capture_content=True) as client:
        client.post_traces(export_request(sent).SerializeToString())
    return url


@pytest.mark.parametrize("own", [False, True])
def test_a_pair_shows_its_session_turn_by_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, own: bool
) -> None:
    """What the user sent, then both arms' answers; the whole history is not said again."""
    url = database(tmp_path, spans(own=own))
    app = rollout(monkeypatch, url, module="pairs", rollout="r", prompt="s/2", repeat="0")
    text = shown(app)
    assert "Session s: 2 turns" in text
    assert [box.label for box in app.expander if box.label.startswith("Turn")] == [
        "Turn 1",
        "Turn 2, this pair",
    ]
    after = text.split("Session s: 2 turns")[1]
    assert ("continues from its own answers" in after) is own
    assert "user <b>hello</b> Baseline baseline first Candidate candidate first" in after
    assert "user and now? Baseline baseline second Candidate candidate second" in after
    assert "recorded" not in after.replace("after the recorded answers", "")


def test_a_lone_turn_is_no_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = database(tmp_path, spans(own=False, turns=(2,)))
    app = rollout(monkeypatch, url, module="pairs", rollout="r", prompt="s/2", repeat="0")
    assert "Session s" not in shown(app)


def test_a_turn_that_one_arm_never_reached_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sent = spans(own=True)[1:]
    failed = replace(turn(1, Arm.CANDIDATE, own=True), error_type="timeout", content=None)
    sent[1] = encode(failed)
    app = rollout(
        monkeypatch, database(tmp_path, sent), module="pairs", rollout="r", prompt="s/2", repeat="0"
    )
    assert "Baseline Not asked, or not stored. Candidate Failed: timeout." in shown(app)


def test_a_trace_is_named_by_its_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    app = rollout(monkeypatch, database(tmp_path, spans(own=True)), module="traces", rollout="r")
    assert app.radio[0].options[0].startswith("session s · 2 generations · ")
    assert "1. chat, turn 1" in shown(app)
    assert "2. chat, turn 2" in shown(app)


def test_other_sessions_of_a_trace_are_left_out() -> None:
    """An application may put several sessions into one trace."""
    other = replace(turn(1, Arm.BASELINE, own=False), conversation_id="t")
    found = session_view.turns_of([encode(other), encode(turn(2, Arm.BASELINE, own=False))], "s")
    assert list(found) == [2]
