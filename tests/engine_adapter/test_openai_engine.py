"""Any OpenAI-compatible server, from route to generation, over a real socket."""

from pathlib import Path

import pytest
from recorded_runs import items_of, recorded
from scripted_server import Route, chat, delta, event, events, running

from collector.contract import Arm, Generation
from engine_adapter.engines import Answer, Chunk, Item, Request, Sent
from engine_adapter.errors import EngineSetupError, RolloutFileError
from engine_adapter.messages import Message
from engine_adapter.routes import HttpRoute
from engine_adapter.run import rollout_file
from engine_adapter.run.schedule import Turn
from engine_adapter.workload import Prompt

USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "prompt_tokens_details": {"cached_tokens": 4},
}
REQUEST = Request(
    messages=(Message(role="user", content="Where?"),), max_tokens=5, temperature=0.5, seed=3
)


def answer(url: str, **settings: object) -> list[Item]:
    """Return a route's answer to one request."""
    route = HttpRoute.model_validate({"engine": "openai", "model": "m", "url": url} | settings)
    return items_of(route, REQUEST)


def test_a_stream_becomes_chunks_and_a_completion() -> None:
    """The role and the usage are no chunks: the first chunk is the first token."""
    with running(Route(chat(["Par", "is"], usage=USAGE)), models=["m"]) as server:
        sent, *chunks, completion = answer(server.url)
        (_, asked) = server.log()
    assert isinstance(sent, Sent)
    assert [chunk.is_answer for chunk in chunks if isinstance(chunk, Chunk)] == [True, True]
    assert completion == Answer(
        text="Paris",
        finish_reason="stop",
        input_tokens=7,
        output_tokens=3,
        cached_input_tokens=4,
        speculation=None,
        response_id="chatcmpl-1",
        model="served",
        sampler="temperature=0.5",
    )
    assert asked.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Where?"}],
        "max_tokens": 5,
        "temperature": 0.5,
        "seed": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_key_headers_and_extra_body_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key comes from the variable that the route names."""
    monkeypatch.setenv("A_KEY", "sesame")
    extra = {"headers": {"X-Team": "search"}, "extra_body": {"min_p": 0.1}, "api_key_env": "A_KEY"}
    with running(Route(chat(["a"]))) as server:
        answer(server.url, **extra)
        asked = server.log()[-1]
    assert (asked.headers["authorization"], asked.headers["x-team"]) == ("bearer sesame", "search")
    assert asked.body["min_p"] == 0.1


def test_an_absent_key_is_told_before_anything_is_sent() -> None:
    """The message names the variable."""
    with pytest.raises(EngineSetupError, match=r"api_key_env: .* NO_SUCH_KEY is not set"):
        answer("http://127.0.0.1:1/v1", api_key_env="NO_SUCH_KEY")


def generation(*replies: Route) -> Generation:
    """Return the record of one request."""
    turn = Turn(Prompt(id="p", cohort="c", prompt="Where?"), 0, Arm.BASELINE)
    with running(*replies) as server:
        (one,) = recorded(HttpRoute(engine="openai", model="m", url=server.url), [turn])
    return one


def test_latency_counts_from_the_first_byte_sent_to_the_first_content() -> None:
    """Time to first token is the server's wait and little more; the role chunk does not count."""
    made = generation(Route(chat(["a", "b"], ttft_s=0.2, gap_s=0.1)))
    assert made.ttft_s >= 0.2
    assert made.stream_max_gap_s >= 0.09
    assert made.ttft_s + made.stream_max_gap_s == pytest.approx(made.e2e_s, abs=1e-6)


def test_a_broken_off_answer_keeps_what_was_seen() -> None:
    """Text, chunks and time to first token stay; counts are absent, and the error has a name."""
    broken = events([event(delta({"content": text}), 0.01) for text in ("Par", "is")], end="cut")
    made = generation(Route(broken))
    assert (made.error_type, made.stream_chunks, made.output_tokens) == (
        "stream_truncated",
        2,
        None,
    )
    assert made.ttft_s is not None
    assert "Paris" in (made.content.output_messages or "")


def test_a_proxy_that_strips_fields_is_named() -> None:
    """A stream without a finish reason is no whole answer."""
    stripped = events([event(delta({"content": "a"})), event("[DONE]")])
    assert generation(Route(stripped)).error_type == "missing_fields"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("url: localhost, model: m", "baseline.url: String should match pattern"),
        ("model: m", "baseline.url: required key is missing"),
        ("url: 'http://a', model: m, headers: {Authorization: x}", "its name into `api_key_env`"),
        ("url: 'http://a', model: m, extra_body: {stream: false}", "each request sets itself"),
        ("url: 'http://a', model: m, api_key_env: sk-123", "baseline.api_key_env: String should"),
        ("url: 'http://a', model: m, metrics: x", "did you mean `metrics_url`"),
    ],
)
def test_a_bad_route_is_named(tmp_path: Path, settings: str, message: str) -> None:
    """Keys of HTTP routes are checked as others are, and a key never stands in the file."""
    path = tmp_path / "rollout.yaml"
    path.write_text(
        f"rollout: r\nworkload: w\nbaseline: {{engine: openai, {settings}}}\n"
        "candidate: {engine: transformers, model: m}\n"
    )
    with pytest.raises(RolloutFileError) as caught:
        rollout_file.read(path)
    assert message in str(caught.value)
