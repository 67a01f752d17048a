"""Values of a request that no span can hold: the user is answered, and the span is kept."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import scripted_server as server
from running_router import QUESTION, STREAMED, Collected, FixedControl, Router, recording
from scripted_server import Route
from waiting import until

from collector.contract import Arm
from engine_adapter.router import generations

ODD: dict[str, dict[str, Any]] = {
    "seed of 2^63": {"seed": 1 << 63},
    "seed below zero": {"seed": -1},
    "top_k of 400 digits": {"top_k": 10**400},
    "max_tokens of 2^64": {"max_tokens": 1 << 64},
    "temperature that no float holds": {"temperature": 10**400},
    "top_p that no int64 holds": {"top_p": 10**300},
    "half a character": {"model": "m\ud800"},
}


@contextmanager
def falling_back() -> Iterator[tuple[Router, Collected]]:
    """Run a recording router whose candidate fails."""
    failing = server.json_reply({"error": {"message": "boom"}}, 500)
    with (
        server.running(Route(server.chat(["a"]))) as baseline,
        server.running(Route(failing)) as candidate,
        recording(baseline.url, candidate.url, FixedControl(arm=Arm.CANDIDATE)) as recorded,
    ):
        yield recorded


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", sorted(ODD))
def test_a_value_that_no_span_holds_costs_neither_answer_nor_span(
    case: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The candidate fails, the baseline answers, and both attempts are recorded without it."""
    question = QUESTION | ODD[case] | {"stream": stream}
    with falling_back() as (router, collected), caplog.at_level(logging.WARNING):
        assert router.ask(question)[0] == 200
        spans = collected.wait_for(2)
        assert [span["draftgate.arm"] for span in spans] == ["candidate", "baseline"]
        for name in ("seed", "top_k", "max_tokens"):
            assert f"gen_ai.request.{name}" not in spans[0]
        assert spans[0]["gen_ai.request.model"] in ("m", "m?")
        assert router.counted("failures") == {"candidate,server_error": 1}
    assert not [record for record in caplog.records if record.exc_info]


def test_a_span_that_cannot_be_made_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer passes, fallen back or not; the log has a line of it and no traceback."""

    def broken(*_: object) -> bytes:
        raise ValueError("no such span")

    monkeypatch.setattr(generations, "export_request", broken)
    with falling_back() as (router, _):
        assert router.ask(STREAMED)[0] == 200
        until(lambda: router.counted("spans").get("failed") == 2)
    assert not [record for record in caplog.records if record.exc_info]
