"""Engines that break off, engines that restart, clients that leave, a collector that is away."""

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import scripted_server as server
from running_router import QUICK, STREAMED, FixedControl, Router, recording, routing
from scripted_server import Route, Step
from waiting import until

from collector.contract import Arm
from engine_adapter.router.settings import Breaker, RouterLimits
from engine_adapter.transport import Timeouts

WITH_USAGE = STREAMED | {"stream_options": {"include_usage": True}}
WORD = server.event(server.delta({"content": "half"}))
EVENT = b"data: " + b"x" * (10 << 20) + b"\n\n"


BROKEN = {
    "stream_truncated": ([WORD, Step.of(b'data: {"choi')], "cut"),
    "idle_timeout": ([WORD, Step.of(b'data: {"choi')], "hang"),
}


@pytest.mark.parametrize("error_type", sorted(BROKEN))
@pytest.mark.parametrize("arm", list(Arm))
def test_an_answer_that_breaks_off_is_seen_to_be_broken(error_type: str, arm: Arm) -> None:
    """What had come was sent, nothing is added, and nobody else is asked."""
    steps, end = BROKEN[error_type]
    timeouts = QUICK if error_type == "idle_timeout" else Timeouts()
    with (
        server.running(Route(server.events(steps, end))) as upstream,
        recording(
            upstream.url,
            upstream.url,
            FixedControl(arm=arm),
            upstream={"timeouts": timeouts},
        ) as (router, collected),
    ):
        with pytest.raises(IncompleteRead) as cut:
            router.ask(WITH_USAGE)
        assert cut.value.partial.endswith(b'data: {"choi')
        assert len(upstream.log()) == 1
        (span,) = collected.wait_for(1)
        assert router.counted("fallbacks") == {}
    assert span["error.type"] == error_type
    assert span["draftgate.arm"] == arm.value


@pytest.mark.parametrize(
    ("middle", "unread"), [(b"data: \xff\xfe\n\n", 0), (EVENT, 1)], ids=["utf-8", "10 MB"]
)
@pytest.mark.parametrize("asked", [STREAMED, WITH_USAGE], ids=["stripped", "plain"])
def test_what_cannot_be_read_passes_all_the_same(
    middle: bytes, unread: int, asked: dict[str, object]
) -> None:
    """Invalid UTF-8 and an event of 10 MB reach the client; the router's memory does not follow."""
    done = Step.of(b"data: [DONE]\n\n")
    reply = server.events([WORD, Step.of(middle), done])
    with server.running(Route(reply)) as upstream, recording(upstream.url) as (router, collected):
        _, _, body = router.ask(asked)
        (span,) = collected.wait_for(1)
        assert router.counted("unread") == {"": unread}
    assert body.count(middle) == 1
    assert body.endswith(b"data: [DONE]\n\n")
    assert span.get("error.type") == (None if unread else "invalid_utf8")


@contextmanager
def resetting(first: bytes) -> Iterator[str]:
    """Accept connections, read a request, send some bytes, and reset them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(first)
                    time.sleep(0.2)
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_connection_that_is_reset_is_tried_once_more_and_then_replaced() -> None:
    """Before a byte was sent; after one, the answer breaks off."""
    control = FixedControl(arm=Arm.CANDIDATE)
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with server.running(Route(server.chat(["a"]))) as baseline:
        with resetting(b"") as candidate, routing(baseline.url, candidate, control) as router:
            assert router.ask(STREAMED)[0] == 200
            assert router.counted("fallbacks") == {"connection_reset": 1}
        word = b"data: {}\n\n"
        begun = head + b"%x\r\n%s\r\n" % (len(word), word)
        with resetting(begun) as candidate, routing(baseline.url, candidate, control) as router:
            with pytest.raises(IncompleteRead):
                router.ask(STREAMED)
            assert router.counted("fallbacks") == {}
        assert len(baseline.log()) == 1


def test_a_baseline_that_restarts_is_answered_by_again() -> None:
    """While it is away clients are told so; a connection that died meanwhile costs no request."""
    script = Path(server.__file__).with_name("restarting_server.py")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    url = f"http://127.0.0.1:{port}/v1"

    def start() -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, str(script), port], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        return process

    def stop(process: "subprocess.Popen[str]") -> None:
        process.kill()
        process.communicate()

    with routing(url, breaker=Breaker(failures=3, open_s=3.0)) as router:
        running = start()
        assert router.ask()[0] == 200
        stop(running)
        running = start()
        assert router.ask()[0] == 200  # over a connection that died with the first
        stop(running)
        assert [router.ask()[0] for _ in range(5)] == [502, 502, 502, 503, 503]
        running = start()
        until(lambda: router.ask()[0] == 200)
        assert not router.state()["arms"]["baseline"]["breaker_open"]
        stop(running)


def leave_early(router: Router) -> None:
    """Ask for a stream, read its beginning, and close the connection."""
    connection = HTTPConnection(urlsplit(router.url).netloc)
    body = b'{"model":"m","stream":true,"messages":[]}'
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    assert connection.getresponse().read(10)
    connection.close()


@pytest.mark.parametrize("arm", list(Arm))
def test_a_client_that_leaves_ends_the_engines_work(arm: Arm) -> None:
    """The connection to the engine is cut within the stream, and nobody else is asked."""
    with (
        server.running(Route(server.chat(["a"] * 200, gap_s=0.05))) as upstream,
        recording(upstream.url, upstream.url, FixedControl(arm=arm)) as (router, collected),
    ):
        leave_early(router)
        until(lambda: [entry.cut for entry in upstream.log()] == [True])
        (span,) = collected.wait_for(1)
        assert router.state()["in_flight"] == 1  # the question itself
    assert span["error.type"] == "client_disconnected"


def test_a_client_that_leaves_before_the_answer_ends_the_wait() -> None:
    """An engine that has not begun is let go of, too, and it is not held against it."""
    with (
        server.running(Route(server.events(end="hang"))) as upstream,
        routing(upstream.url) as router,
    ):
        with router.connected() as client:
            body = b'{"stream":true}'
            client.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
                % (len(body), body)
            )
            until(lambda: router.state()["in_flight"] == 2)
        until(lambda: router.state()["in_flight"] == 1)
        assert router.counted("failures") == {"baseline,client_disconnected": 1}


def test_a_collector_that_is_away_costs_users_nothing() -> None:
    """Spans wait up to a bound, beyond it they are dropped and counted, and then they arrive."""
    with (
        server.running(Route(server.chat(["a"]))) as upstream,
        recording(upstream.url, limits=RouterLimits(spans=4)) as (router, collected),
    ):
        collected.answering = 503
        assert [router.ask(STREAMED)[0] for _ in range(10)] == [200] * 10
        until(lambda: router.counted("spans") == {"dropped": 6})
        assert router.state()["spans_waiting"] == 4
        collected.answering = 200
        assert len(collected.wait_for(4)) == 4
        until(lambda: router.counted("spans") == {"dropped": 6, "exported": 4})
        collected.answering = 400
        router.ask(STREAMED)
        until(lambda: router.counted("spans") == {"dropped": 6, "exported": 4, "refused": 1})
    with routing(collector_url="http://127.0.0.1:9") as router:
        assert router.ask(STREAMED)[0] == 502
