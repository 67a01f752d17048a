"""Responses pass the router byte for byte, except the event that it requested itself."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import scripted_server as server
from recorded_answers import FOLDER
from running_router import QUESTION, FixedControl, routing
from scripted_server import Reply, Route, Step

from collector.contract import Arm
from engine_adapter.router.answer_edit import AnswerEdit
from engine_adapter.router.http1.headers import RequestHeaders
from engine_adapter.router.json_members import with_members, without_members
from engine_adapter.router.request_edit import edit_request

OWN = Path(__file__).parent / "recorded"
STREAMS = {
    "vllm": FOLDER / "vllm" / "draft.sse",
    "vllm_ngram": FOLDER / "vllm" / "ngram.sse",
    "llamacpp": FOLDER / "llamacpp" / "draft.sse",
    "llamacpp_timings": FOLDER / "llamacpp" / "draft_timings_per_token.sse",
    "transformers": OWN / "transformers.sse",
}
WITH_USAGE = QUESTION | {"stream": True, "stream_options": {"include_usage": True}}


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def streamed(data: bytes, size: int) -> Reply:
    return server.events([Step.of(piece) for piece in pieces(data, size)])


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_recorded_stream_passes_byte_for_byte(name: str) -> None:
    """Cut anywhere, even within an event, a character or a line end; for either arm."""
    data = STREAMS[name].read_bytes()
    with (
        server.running(Route(streamed(data, 101))) as baseline,
        server.running(Route(streamed(data, len(data)))) as candidate,
    ):
        for arm in Arm:
            control = FixedControl(arm=arm)
            with routing(baseline.url, candidate.url, control) as router:
                status, headers, body = router.ask(WITH_USAGE)
            assert (status, headers["content-type"]) == (200, "text/event-stream")
            assert body == data


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_usage_that_the_client_did_not_ask_for_is_taken_out_alone(size: int) -> None:
    """The client gets the recording without that event, however the bytes arrive."""
    data = STREAMS["vllm"].read_bytes()
    events = data.split(b"\n\n")
    usage = [event for event in events if b'"choices":[]' in event]
    assert len(usage) == 1
    edit = AnswerEdit(edit_request(b'{"stream":true}', {"stream": True}, "vllm"), 1 << 20)
    seen = b"".join(edit.feed(piece) for piece in pieces(data, size)) + edit.rest()
    assert seen == b"\n\n".join(event for event in events if event not in usage)


def test_a_stream_that_says_its_usage_in_any_case_keeps_it() -> None:
    """Transformers writes it on the last chunk, unasked: it is not the router's to take out."""
    data = STREAMS["transformers"].read_bytes()
    edit = AnswerEdit(edit_request(b'{"stream":true}', {"stream": True}, "openai"), 1 << 20)
    assert edit.feed(data) + edit.rest() == data


def test_the_usage_that_asking_adds_to_each_event_is_taken_out() -> None:
    """OpenAI's own API writes `usage: null` on every other event of such a stream."""
    edit = AnswerEdit(edit_request(b'{"stream":true}', {"stream": True}, "openai"), 1 << 20)
    sent = b'data: {"id":"1","usage":null,"choices":[{"delta":{"content":"\\"usage\\""}}]}\r\n\r\n'
    assert edit.feed(sent) == sent.replace(b'"usage":null,', b"", 1)


def test_llamacpps_counts_a_chunk_are_taken_out_but_at_the_end() -> None:
    """Asked for by the router, they leave every chunk but the one that has them unasked."""
    data = STREAMS["llamacpp_timings"].read_bytes()
    asked = edit_request(
        b"{}", {"stream": True, "stream_options": {"include_usage": True}}, "llamacpp"
    )
    edit = AnswerEdit(asked, 1 << 20)
    seen = (edit.feed(data) + edit.rest()).split(b"\n\n")
    before = data.split(b"\n\n")
    assert [b'"timings"' in event for event in seen].count(True) == 1
    assert seen[-3:] == before[-3:]
    for event, was in zip(seen[:-3], before[:-3], strict=True):
        assert event == re.sub(rb',"timings":\{[^}]*\}', b"", was)


def test_sglangs_counts_are_taken_out_of_whole_answers_and_of_streams() -> None:
    """`sglext` comes only because the router asked for it."""
    plain = {"id": "1", "choices": [{"index": 0, "message": {"content": "a"}}]}
    said = plain | {"sglext": {"spec_tokens_details": {"spec_verify_ct": 3}}}
    whole = AnswerEdit(edit_request(b"{}", {}, "sglang"), 1 << 20)
    assert json.loads(whole.whole(json.dumps(said).encode())) == plain
    stream = AnswerEdit(edit_request(b'{"stream":true}', {"stream": True}, "sglang"), 1 << 20)
    event = f"data: {json.dumps(said)}\n\n".encode()
    assert stream.feed(event) == f"data: {json.dumps(plain)}\n\n".encode()


def test_a_request_is_sent_as_it_came_but_for_what_is_asked_besides() -> None:
    """Spaces, numbers, escapes, duplicates and unknown fields stay; one member is added."""
    body = (
        b'{ "model":"m", "x": 1e400,"big":123456789012345678901234567890, "x":2.50,\n'
        b'"messages":[{"role":"user","content":"\\u00e4\\ud800 \xc3\xa4"}],"stream":true }'
    )
    with server.running(Route(server.chat(["a"]))) as upstream:
        control = FixedControl()
        with routing(upstream.url, upstream.url, control) as router:
            router.ask(body)
        (received,) = upstream.log()
    assert received.body["stream_options"] == {"include_usage": True}
    asked = edit_request(body, {"stream": True}, "openai").body
    assert asked == body[:-1] + b',"stream_options":{"include_usage":true}}'
    assert control.asked[0].stream


def test_members_are_changed_in_place() -> None:
    """Whatever their spaces; a client's options keep what the router does not ask for."""
    text = '{"a" : [1, {"b":2}] ,\n "stream_options":{"x":1.0} , "c":"}"}'
    assert with_members(text, {"stream_options": 5, "d": None}) == (
        '{"a" : [1, {"b":2}] ,\n "stream_options":5 , "c":"}","d":null}'
    )
    assert without_members(text, "a".__eq__) == '{"stream_options":{"x":1.0} , "c":"}"}'
    assert (
        without_members(text, "c".__eq__) == '{"a" : [1, {"b":2}] ,\n "stream_options":{"x":1.0}}'
    )
    assert without_members('{ "a":1 }', "a".__eq__) == "{  }"
    assert with_members("{ }", {"a": 1}) == '{ "a":1}'
    merged = edit_request(
        b'{"stream":true,"stream_options":{"include_obfuscation":false}}',
        {"stream": True, "stream_options": {"include_obfuscation": False}},
        "vllm",
    )
    assert json.loads(merged.body)["stream_options"] == {
        "include_obfuscation": False,
        "include_usage": True,
    }


@pytest.mark.parametrize("path", ["/embeddings", "/responses", "/audio/speech?voice=a%20b", "/new"])
def test_other_routes_pass_to_the_baseline(path: str) -> None:
    """Nothing is added to them, nothing is mirrored, and the rollout is not asked."""
    answer = server.json_reply({"data": [1, 2]}, 201, x_ratelimit_remaining="7")
    control = FixedControl(arm=Arm.CANDIDATE, mirrored=True)
    with server.running(Route(answer, path=f"/v1{path}")) as baseline:
        with routing(baseline.url, control=control) as router:
            status, headers, body = router.ask({"input": "x", "stream": True}, path=path)
        (received,) = baseline.log()
    assert (status, json.loads(body)) == (201, {"data": [1, 2]})
    assert headers["x-ratelimit-remaining"] == "7"
    assert received.body == {"input": "x", "stream": True}
    assert control.asked == []


def test_the_models_are_the_baselines() -> None:
    """GET passes without a body."""
    with (
        server.running(models=["tiny"]) as baseline,
        routing(baseline.url, baseline.url) as router,
        urlopen(f"{router.url}/models") as answer,  # noqa: S310
    ):
        listed: Any = json.load(answer)
    assert [entry["id"] for entry in listed["data"]] == ["tiny"]


def test_headers_pass_by_a_list() -> None:
    """The client's key, cookies and address stay here; what engines read goes on."""
    with server.running(Route(server.chat(["a"]))) as upstream:
        with routing(
            upstream.url,
            upstream.url,
            upstream={"api_key": "sk-upstream"},
            pass_headers=("X-Tenant",),
        ) as router:
            router.ask(
                authorization="Bearer sk-client",
                cookie="session=1",
                x_forwarded_for="1.2.3.4",
                openai_organization="org",
                x_stainless_lang="python",
                x_tenant="blue",
            )
        (received,) = upstream.log()
    assert received.headers["authorization"] == "bearer sk-upstream"  # the log is in lower case
    assert received.headers["openai-organization"] == "org"
    assert received.headers["x-stainless-lang"] == "python"
    assert received.headers["x-tenant"] == "blue"
    assert received.headers["accept-encoding"] == "identity"
    assert not {"cookie", "x-forwarded-for"} & set(received.headers)
    hop = [
        (b"Connection", b"close, X-Stainless-Once"),
        (b"X-Stainless-Once", b"1"),
        (b"Accept", b"*/*"),
        (b"TE", b"x"),
        (b"Host", b"h"),
        (b"Accept-Encoding", b"gzip"),
    ]
    passed = RequestHeaders(("te", "host", "accept-encoding")).select(hop)
    assert passed == [(b"Accept", b"*/*")]
