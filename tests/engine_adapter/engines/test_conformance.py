"""One suite for every engine over HTTP: what it promises, and what becomes of bad answers.

Scripts replay what real servers sent where there was one; llama.cpp and vLLM run for real, too.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
import scripted_server as server
from engine_scripts import SCRIPTS, Script
from recorded_runs import items_of, recorded

from collector.contract import Arm, violations
from engine_adapter.engines import Answer, Chunk, Item, Request, Sent
from engine_adapter.errors import EngineSetupError
from engine_adapter.messages import Message
from engine_adapter.routes import HttpRoute
from engine_adapter.run.schedule import Turn
from engine_adapter.workload import Prompt

ENGINES = sorted(SCRIPTS)
REQUEST = Request(
    messages=(Message(role="user", content="Where?"),),
    max_tokens=64,
    trace_id="0af7651916cd43dd8448eb211c80319c",
    span_id="b7ad6b7169203331",
)


def route(engine: str, url: str, model: str, **more: Any) -> HttpRoute:
    return HttpRoute.model_validate({"engine": engine, "url": url, "model": model} | more)


def answer(to: HttpRoute) -> list[Item]:
    return items_of(to, REQUEST)


def asked(turns: int = 1, *, warmup: bool = False) -> list[Turn]:
    prompts = [Prompt(id=f"p{number}", cohort="c", prompt="Where?") for number in range(turns)]
    return [Turn(prompt, 0, Arm.CANDIDATE, warmup=warmup) for prompt in prompts]


@pytest.mark.parametrize("name", ENGINES)
def test_an_answer_is_sent_then_chunks_then_one_completion(name: str) -> None:
    """The order of things, the text, and exactly the counts that were said."""
    script = SCRIPTS[name]
    with server.running(*script.routes()) as running:
        sent, *chunks, completion = answer(route(name, running.url, script.model))
    assert isinstance(sent, Sent)
    assert isinstance(completion, Answer)
    parts = [chunk for chunk in chunks if isinstance(chunk, Chunk)]
    assert len(parts) == len(chunks)
    assert sorted(part.at_s for part in parts) == [part.at_s for part in parts]
    assert sent.at_s <= parts[0].at_s
    assert completion.text
    assert completion.output_tokens == script.output_tokens
    expected = script.chunk_tokens or (None,) * len(parts)
    assert tuple(part.tokens for part in parts) == expected
    assert completion.speculation == script.speculation


@pytest.mark.parametrize("name", ENGINES)
def test_a_record_breaks_no_law_and_names_the_engine(name: str) -> None:
    """Provider, fingerprint and ids are set; the contract's laws hold."""
    script = SCRIPTS[name]
    with server.running(*script.routes()) as running:
        first, second = recorded(route(name, running.url, script.model), asked(2))
    assert violations(first) == ()
    assert first.provider == ("llama_cpp" if name == "llamacpp" else name)
    assert first.fingerprint
    assert first.fingerprint == second.fingerprint
    assert first.trace_id != second.trace_id
    assert first.error_type is None


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_told_the_trace_that_its_span_joins(name: str) -> None:
    """W3C traceparent of the generation's span, and X-Request-Id, on every request that counts."""
    script = SCRIPTS[name]
    with server.running(*script.routes()) as running:
        answer(route(name, running.url, script.model))
        sent = [one for one in running.log() if one.path == server.OPENAI][-1]
    assert sent.headers["traceparent"] == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert sent.headers["x-request-id"] == "0af7651916cd43dd8448eb211c80319c"
    assert sent.body["stream_options"] == {"include_usage": True}


def half_way(script: Script) -> server.Reply:
    return script.failing({"error": {"message": "CUDA error", "code": 500}})


def half_way_as_tgi_says_it(script: Script) -> server.Reply:
    return script.failing({"error": "CUDA error", "error_type": "generation"})


def half_way_as_lmdeploy_says_it(script: Script) -> server.Reply:
    return script.failing({"object": "error", "message": "CUDA error", "code": 500})


def busy(script: Script) -> server.Reply:
    del script
    return server.json_reply({"error": {"message": "slow down"}}, 429, retry_after="3")


def broken(script: Script) -> server.Reply:
    del script
    return server.json_reply({"error": {"message": "out of memory"}}, 500)


def stripped(script: Script) -> server.Reply:
    return script.without("choices")


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    ("fault", "error_type"),
    [
        (Script.cut, "stream_truncated"),
        (half_way, "server_error_in_stream"),
        (half_way_as_tgi_says_it, "server_error_in_stream"),
        (half_way_as_lmdeploy_says_it, "server_error_in_stream"),
        (busy, "rate_limited"),
        (broken, "server_error"),
        (stripped, "missing_fields"),
    ],
)
def test_a_failed_answer_is_recorded_with_its_reason_and_the_run_goes_on(
    name: str, fault: Callable[[Script], server.Reply], error_type: str
) -> None:
    """Each turn is a generation with an error; nothing of it is counted as speculation."""
    script = SCRIPTS[name]
    with server.running(*script.routes(fault(script))) as running:
        made = recorded(route(name, running.url, script.model), asked(2))
    assert [one.error_type for one in made] == [error_type] * 2
    assert [one.speculation for one in made] == [None] * 2
    assert [one.output_tokens for one in made] == [None] * 2


@pytest.mark.parametrize("name", ENGINES)
def test_what_an_engine_left_out_is_absent(name: str) -> None:
    """Without usage, metrics, timings and extensions the text is there, and no number is."""
    script = SCRIPTS[name]
    bare = script.without("usage", "metrics", "timings", "sglext", "id")
    with server.running(*script.routes(bare)) as running:
        (made,) = recorded(route(name, running.url, script.model), asked())
    assert made.error_type is None
    assert (made.input_tokens, made.output_tokens, made.response_id) == (None, None, None)
    assert (made.queue_s, made.prefill_s, made.decode_s, made.tpot_s) == (None,) * 4
    said = made.speculation
    assert said is None or (said.draft_tokens, said.accepted_tokens, said.steps) == (None,) * 3


@pytest.mark.parametrize("name", ENGINES)
def test_an_engines_clock_is_never_read(name: str) -> None:
    """Its `created` may be years off: only durations count, and they are the client's."""
    script = SCRIPTS[name]
    skewed = [one | {"created": 4_102_444_800} for one in script.stream]
    reply = server.events([*map(server.event, skewed), server.event("[DONE]")])
    with server.running(*script.routes(reply)) as running:
        (made,) = recorded(route(name, running.url, script.model), asked())
    assert made.start_unix_ns < made.end_unix_ns < 4_102_444_800 * 10**9
    assert violations(made) == ()


@pytest.mark.parametrize("name", ENGINES)
def test_a_route_that_cannot_work_is_told_before_the_run(name: str) -> None:
    """Nobody there, a wrong model, a refused key, a web page: each names itself."""
    script = SCRIPTS[name]
    with pytest.raises(EngineSetupError, match="connection refused; is the engine running"):
        answer(route(name, "http://127.0.0.1:1/v1", script.model))
    with (
        server.running(*script.routes()) as running,
        pytest.raises(EngineSetupError, match=f"'other'; it lists {re.escape(script.model)}"),
    ):
        answer(route(name, running.url, "other"))
    refused = server.Route(server.json_reply({"error": "bad key"}, 401), path="/v1/models")
    with (
        server.running(refused, *script.routes()) as running,
        pytest.raises(EngineSetupError, match="answered 401: bad key"),
    ):
        answer(route(name, running.url, script.model))


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "openai"])
def test_a_web_page_in_place_of_an_engine_is_told_before_the_run(name: str) -> None:
    """A gateway's login page answers 200 to everything."""
    script = SCRIPTS[name]
    page = server.Step.of(b"<html><title>Sign in</title></html>")
    html = server.Reply([page], headers={"content-type": "text/html"})
    with (
        server.running(*script.routes(html)) as running,
        pytest.raises(EngineSetupError, match="HTML page"),
    ):
        answer(route(name, running.url, script.model))


def test_a_warm_up_joins_no_trace() -> None:
    """It has no span, and an engine's own must not join that of a turn that counts."""
    script = SCRIPTS["openai"]
    with server.running(*script.routes()) as running:
        recorded(route("openai", running.url, script.model), asked(warmup=True))
        last = running.log()[-1]
    assert last.path == server.OPENAI
    assert "traceparent" not in last.headers
