"""Arms: the chosen arm answers, the other one if it fails, and the mirror beside them."""

import json
from contextlib import ExitStack
from typing import Any

import pytest
import scripted_server as server
from running_router import QUESTION, QUICK, STREAMED, FixedControl, recording, routing
from scripted_server import Reply, Route, Step
from waiting import until

from collector.contract import Arm
from engine_adapter.router.breaker import CircuitBreaker
from engine_adapter.router.settings import Breaker, RouterLimits
from engine_adapter.transport import Timeouts

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CANDIDATES = FixedControl(arm=Arm.CANDIDATE)

FAILING = {
    "server_error": server.json_reply({"error": {"message": "boom"}}, 500),
    "invalid_request": server.json_reply({"error": {"message": "min_p is not supported"}}, 400),
    "rate_limited": server.json_reply({"error": {"message": "slow"}}, 429, retry_after="1"),
    "first_byte_timeout": server.events(end="hang"),
    "server_error_in_stream": server.events([server.event({"error": {"message": "no"}})]),
    "server_error_in_stream, named": server.events(
        [Step.of(b'event: error\ndata: {"message": "no"}\n\n')]
    ),
    "stream_truncated": server.events(end="cut"),
    "invalid_utf8": server.events([Step.of(b"data: \xff\xfe\n\n")]),
    "invalid_json": server.events([Step.of(b"data: {not json\n\n")]),
    "empty_answer": server.json_reply({}),
}


@pytest.mark.parametrize("case", sorted(FAILING))
def test_the_baseline_answers_where_the_candidate_fails_before_its_first_byte(case: str) -> None:
    """Once, with both attempts recorded: the user waits, and notices nothing else."""
    error_type = case.partition(",")[0]
    timeouts = QUICK if error_type == "first_byte_timeout" else Timeouts()
    with (
        server.running(Route(server.chat(["from", " baseline"]))) as baseline,
        server.running(Route(FAILING[case])) as candidate,
        recording(
            baseline.url,
            candidate.url,
            CANDIDATES,
            upstream={"timeouts": timeouts},
        ) as (router, collected),
    ):
        status, _, body = router.ask(STREAMED, traceparent=PARENT)
        assert status == 200
        assert b"from" in body
        assert body.endswith(b"data: [DONE]\n\n")
        assert len(candidate.log()) == 1
        assert len(baseline.log()) == 1
        failed, answered = collected.wait_for(2)
        assert router.counted("fallbacks") == {error_type: 1}
    assert (failed["draftgate.arm"], failed["error.type"]) == ("candidate", error_type)
    assert (answered["draftgate.arm"], answered["draftgate.fallback"]) == ("baseline", True)
    assert "error.type" not in answered
    assert answered["draftgate.retries"] == 1
    assert {failed["parent"], answered["parent"]} == {"00f067aa0ba902b7"}
    assert failed["span"] != answered["span"]
    if error_type == "first_byte_timeout":  # what the user waited for, the candidate's time too
        assert answered["gen_ai.response.time_to_first_chunk"] > 1.0


def test_a_candidate_that_is_not_there_is_left_alone_after_some_failures() -> None:
    """The breaker opens; every user is answered by the baseline all the same."""
    with server.running(Route(server.chat(["a"]))) as baseline:
        settings = {"breaker": Breaker(failures=3, open_s=60.0)}
        with routing(baseline.url, control=CANDIDATES, **settings) as router:
            assert [router.ask(STREAMED)[0] for _ in range(5)] == [200] * 5
            assert router.counted("fallbacks") == {"connection_refused": 3, "breaker_open": 2}
            assert router.state()["arms"]["candidate"]["breaker_open"]
        assert len(baseline.log()) == 5


def test_a_breaker_lets_one_request_try_and_closes_when_it_is_answered() -> None:
    """Trials are one at a time, and one that never ends blocks nothing."""
    now_s = [0.0]
    breaker = CircuitBreaker(Breaker(failures=2, open_s=10.0), clock=lambda: now_s[0])
    breaker.failed()
    assert breaker.allows()
    breaker.failed()
    assert (breaker.is_open, breaker.allows()) == (True, False)
    now_s[0] = 10.0
    assert (breaker.allows(), breaker.allows()) == (True, False)
    now_s[0] = 20.0
    assert breaker.allows()
    breaker.succeeded()
    assert (breaker.is_open, breaker.allows(), breaker.allows()) == (False, True, True)


def test_nothing_goes_to_a_candidate_that_was_switched_off_after_the_decision() -> None:
    """The switch is asked again just before the request leaves; that is no fallback."""
    with server.running(Route(server.chat(["a"]))) as baseline:
        for control in (
            FixedControl(arm=Arm.CANDIDATE, allowed=False),
            FixedControl(mirrored=True, allowed=False),
        ):
            with routing(baseline.url, control=control) as router:
                assert router.ask(STREAMED)[0] == 200
                assert router.counted("fallbacks") == {}
                assert router.counted("mirrors") == {}


def test_the_baselines_errors_are_the_clients() -> None:
    """The engine's response passes unchanged; if no engine answers, a JSON error says so."""
    error = server.json_reply({"error": {"message": "no such model"}}, 404, retry_after="3")
    with server.running(Route(error)) as baseline, routing(baseline.url) as router:
        status, headers, body = router.ask()
        assert (status, headers["retry-after"]) == (404, "3")
        assert body == b'{"error": {"message": "no such model"}}'
    with routing() as router:
        status, _, body = router.ask()
        assert status == 502
        assert b'"connection_refused"' in body
        assert b"127.0.0.1" not in body
    with (
        server.running(Route(Reply(end="hang"))) as hanging,
        routing(hanging.url, upstream={"timeouts": QUICK}) as router,
    ):
        assert router.ask()[0] == 504


def pair_of(spans: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    by_arm = {span["draftgate.arm"]: span for span in spans}
    return by_arm["baseline"], by_arm["candidate"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_mirrored_request_makes_a_pair(stream: bool) -> None:
    """The user gets the baseline's answer; the candidate's is recorded, its acceptance with it."""
    said = {
        "metrics": {
            "speculative_decoding": {
                "num_spec_steps": 2,
                "num_draft_tokens": 8,
                "num_accepted_draft_tokens": 5,
                "acceptance_histogram": [0, 0, 1, 1],
            }
        }
    }
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    last = server.event(server.delta(None, usage=usage, **said))
    chat = server.chat(["can", "did"], gap_s=0.01)
    whole = {
        "id": "1",
        "model": "served",
        "usage": usage,
        **said,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "candid"},
                "finish_reason": "stop",
            }
        ],
    }
    reply = (
        server.events([*chat.steps[:-2], last, chat.steps[-1]])
        if stream
        else server.json_reply(whole)
    )
    plain = server.chat(["base"]) if stream else server.json_reply(whole | {"metrics": None})
    with (
        server.running(Route(plain)) as baseline,
        server.running(Route(reply)) as candidate,
        recording(
            baseline.url,
            candidate.url,
            FixedControl(mirrored=True),
            upstream={"engine": "vllm", "fingerprint": "f1", "launch": "monday-1"},
        ) as (router, collected),
    ):
        _, _, body = router.ask(QUESTION | {"stream": stream, "max_tokens": 9}, traceparent=PARENT)
        assert b"did" not in body or not stream
        mine, other = pair_of(collected.wait_for(2))
        (seen,) = candidate.log()
        assert router.counted("mirrors") == {"answered": 1}
    assert mine["draftgate.prompt.id"] == other["draftgate.prompt.id"]
    assert (mine["draftgate.repeat"], other["draftgate.repeat"]) == (0, 0)
    assert (mine["draftgate.mirrored"], other["draftgate.mirrored"]) == (False, True)
    assert other["links"] == [mine["span"]]
    assert mine["trace"] == PARENT.split("-")[1] != other["trace"]
    assert seen.headers["traceparent"] == f"00-{other['trace']}-{other['span']}-01"
    assert other["spec_decode.num_accepted_tokens"] == 5
    assert other["spec_decode.num_steps"] == 2
    assert other["gen_ai.usage.output_tokens"] == 2
    assert other["gen_ai.request.max_tokens"] == 9
    assert other["draftgate.cohort"] == "chat"
    assert mine["gen_ai.conversation.id"] == other["gen_ai.conversation.id"] == "s1"
    assert (other["name"], other["gen_ai.provider.name"]) == ("chat m", "vllm")
    assert "gen_ai.input.messages" not in mine
    if stream:
        assert other["gen_ai.response.time_to_first_chunk"] > 0
        assert other["draftgate.stream.chunks"] == 2
    else:
        assert "gen_ai.response.time_to_first_chunk" not in other


def test_content_is_recorded_where_it_is_asked_for() -> None:
    """Text alone: of an image, that there was one."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    asked = STREAMED | {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "What?"}, picture]}]
    }
    with (
        server.running(Route(server.chat(["a", "b"]))) as baseline,
        recording(baseline.url, record_content=True) as (router, collected),
    ):
        router.ask(asked)
        (span,) = collected.wait_for(1)
    assert span["gen_ai.input.messages"] == (
        '[{"role": "user", "parts": [{"type": "text", "content": "What?"}, '
        '{"type": "blob", "modality": "image"}]}]'
    )
    assert '"content": "ab"' in span["gen_ai.output.messages"]


def test_calls_and_reasoning_are_recorded_with_the_tools_that_were_offered() -> None:
    """By the conventions, as a run records them: from the engine's deltas."""
    tool = {"name": "where", "parameters": {"type": "object"}}
    called = {"index": 0, "id": "c", "function": {"name": "where", "arguments": "{"}}
    steps = [
        server.event(server.delta({"reasoning_content": "Hm."})),
        server.event(server.delta({"tool_calls": [called]})),
        server.event(server.delta({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]})),
        server.event(server.delta({}, "tool_calls")),
        server.event("[DONE]"),
    ]
    with (
        server.running(Route(server.events(steps))) as baseline,
        recording(baseline.url, record_content=True) as (router, collected),
    ):
        asked = {"tools": [{"type": "function", "function": tool}], "tool_choice": "required"}
        schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "string"}}}
        router.ask(STREAMED | asked | {"response_format": schema})
        (span,) = collected.wait_for(1)
    assert json.loads(span["gen_ai.tool.definitions"]) == [{"type": "function", **tool}]
    assert span["draftgate.request.tool_choice"] == "required"
    assert span["draftgate.dim.model"] == STREAMED["model"]
    assert json.loads(span["draftgate.output_schema"]) == {"type": "string"}
    (said,) = json.loads(span["gen_ai.output.messages"])
    assert said["parts"] == [
        {"type": "reasoning", "content": "Hm."},
        {"type": "tool_call", "id": "c", "name": "where", "arguments": {}},
    ]
    assert span["gen_ai.request.stream"] is True
    first = span["gen_ai.response.time_to_first_chunk"]
    assert span["draftgate.response.time_to_first_output_token"] >= first


@pytest.mark.parametrize("stream", [True, False])
def test_a_200_that_says_nothing_is_a_failure(stream: bool) -> None:
    """The client gets the engine's bytes; the span names the failure."""
    reply = server.json_reply({})
    if stream:
        reply = server.events([server.event({}), server.event("[DONE]")])
    with server.running(Route(reply)) as baseline, recording(baseline.url) as (router, collected):
        assert router.ask(STREAMED | {"stream": stream})[0] == 200
        (span,) = collected.wait_for(1)
    assert span["error.type"] == "empty_answer"


def test_mirrors_are_dropped_and_counted_beyond_their_bound() -> None:
    """A candidate that hangs costs users nothing."""
    with ExitStack() as candidates, server.running(Route(server.chat(["a"]))) as baseline:
        hanging = server.running(Route(server.events(end="hang")))
        candidate = candidates.enter_context(hanging)
        control, limits = FixedControl(mirrored=True), RouterLimits(mirrors=2)
        with routing(baseline.url, candidate.url, control, limits=limits) as router:
            assert [router.ask(STREAMED)[0] for _ in range(5)] == [200] * 5
            assert router.counted("mirrors") == {"dropped": 3}
            assert router.state()["mirrors_in_flight"] == 2
            until(lambda: len(candidate.log()) == 2)
            candidates.close()
            until(lambda: not router.state()["mirrors_in_flight"])
            assert router.counted("mirrors") == {"dropped": 3, "failed": 2}
            assert router.counted("failures") == {"candidate,stream_truncated": 2}
