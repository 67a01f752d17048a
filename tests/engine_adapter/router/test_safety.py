"""Keys, limits, and requests that two servers could read differently."""

import hashlib
import logging

import pytest
import scripted_server as server
from running_router import QUESTION, FixedControl, Router, recording, routing
from scripted_server import Route
from waiting import until

from engine_adapter.router.settings import ClientKey, RouterLimits

SECRET = "sk-team-a-4f1d"
KEY = ClientKey(name="team-a", sha256=hashlib.sha256(SECRET.encode()).hexdigest())


def raw(router: Router, sent: bytes) -> bytes:
    """Return the beginning of the response to bytes that no HTTP library would send."""
    with router.connected() as client:
        client.sendall(sent)
        return client.recv(65536)


def test_only_known_keys_are_let_in() -> None:
    """By either header; health alone is open, and no upstream hears of a request without a key."""
    with (
        server.running(Route(server.chat(["a"]))) as upstream,
        routing(upstream.url, client_keys=(KEY,)) as router,
    ):
        assert router.ask(authorization=f"Bearer {SECRET}")[0] == 200
        assert router.ask(x_api_key=SECRET)[0] == 200
        for headers in (
            {},
            {"authorization": "Bearer sk-other"},
            {"authorization": f"Basic {SECRET}"},
            {"authorization": f"Bearer {KEY.sha256}"},
            {"x_api_key": ""},
        ):
            status, answered, body = router.ask(**headers)
            assert (status, answered["www-authenticate"]) == (401, "Bearer")
            assert b'"invalid_api_key"' in body
        assert len(upstream.log()) == 2
        assert raw(router, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 401")
        assert raw(router, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert SECRET not in repr(KEY)
    assert KEY.sha256 not in repr(KEY)


BODY = b'{"model":"m","messages":[]}'
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
UNCLEAR = {
    "two lengths": POST + b"Content-Length: 27\r\nContent-Length: 3\r\n\r\n" + BODY,
    "length and chunks": POST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "hidden chunks": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "space before the colon": POST + b"Content-Length : 27\r\n\r\n" + BODY,
    "a folded line": POST + b"X-A: 1\r\n Content-Length: 27\r\n\r\n" + BODY,
    "a sign in the length": POST + b"Content-Length: +27\r\n\r\n" + BODY,
    "a bare line end in a name": POST + b"X\n-A: 1\r\nContent-Length: 27\r\n\r\n" + BODY,
}


@pytest.mark.parametrize("name", sorted(UNCLEAR))
def test_a_request_that_could_be_read_in_two_ways_is_refused(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of it, nor of what hides behind it, reaches an engine or a log: it may hold a key."""
    with (
        server.running(Route(server.chat(["a"])), models=["m"]) as upstream,
        routing(upstream.url) as router,
    ):
        assert raw(router, UNCLEAR[name]).split(b" ")[1] == b"400"
        assert upstream.log() == []
    assert "Content-Length" not in caplog.text


@pytest.mark.parametrize(
    "path",
    [
        "/metrics2",
        "/v1",
        "/v2/models",
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/v1/..%2fmetrics",
        "/v1//models",
        "/v1/a\\b",
        "/v1/./models",
        "/v1/models%00",
        "http://other/v1/../x",
    ],
)
def test_other_paths_and_those_with_two_meanings_are_not_passed(path: str) -> None:
    """Only routes below /v1, written plainly."""
    with (
        server.running(Route(server.chat(["a"])), models=["m"]) as upstream,
        routing(upstream.url) as router,
    ):
        answer = raw(router, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert answer.split(b" ")[1] in (b"404", b"400")
        assert upstream.log() == []


def test_limits_are_kept() -> None:
    """Of a request's size, and of how many are in flight."""
    limits = RouterLimits(body_bytes=1000, in_flight=1)
    with (
        server.running(Route(server.events(end="hang"))) as upstream,
        routing(upstream.url, limits=limits) as router,
    ):
        status, _, body = router.ask(b"x" * 1001)
        assert (status, b'"request_too_large"' in body) == (413, True)
        with router.connected() as client:
            client.sendall(POST + b"Content-Length: 27\r\n\r\n" + BODY)
            until(lambda: router.state()["in_flight"] == 2)
            status, headers, body = router.ask()
            assert (status, headers["retry-after"]) == (503, "1")
            assert b'"router_full"' in body
        assert router.counted("refusals") == {"request_too_large": 1, "router_full": 1}


def test_a_body_that_is_no_json_is_the_baselines_to_judge() -> None:
    """It passes as it is, and no rollout is asked about it."""
    control = FixedControl()
    refused = server.json_reply({"error": {"message": "not JSON"}}, 400)
    with (
        server.running(Route(refused)) as upstream,
        routing(upstream.url, control=control) as router,
    ):
        for body in (b"[1]", b"3", b'"\\ud800"'):
            assert router.ask(body)[0] == 400
    assert control.asked == []


def test_no_content_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Neither of an answer nor of a failure, at any level; nor is it in a refusal."""
    caplog.set_level(logging.DEBUG)
    question = QUESTION | {"messages": [{"role": "user", "content": "my-secret-question"}]}
    failing = server.json_reply({"error": {"message": "my-secret-question"}}, 500)
    with (
        server.running(Route(failing, model="m"), Route(server.chat(["my-answer"]))) as upstream,
        recording(upstream.url) as (router, collected),
    ):
        router.ask(question)
        router.ask(question | {"model": "other", "stream": True})
        spans = collected.wait_for(2)
    assert "my-secret" not in caplog.text + str(spans)
    assert "my-answer" not in caplog.text + str(spans)


def test_a_head_comes_with_the_first_bytes_of_its_body() -> None:
    """In one packet: a packet of its own would cost as much as a chunk."""
    body = b'{"stream":true}'
    asked = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
    with (
        server.running(Route(server.chat(["a word"], ttft_s=0.05))) as upstream,
        routing(upstream.url) as router,
    ):
        head, _, events = raw(router, asked % (len(body), body)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"data: " in events
