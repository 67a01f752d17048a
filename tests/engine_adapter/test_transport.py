"""The streaming HTTP core against a real server process: times, and every failure by its name."""

import asyncio
import socket
import statistics
import threading
import time
from contextlib import aclosing

import pytest
from scripted_server import (
    OPENAI,
    Reply,
    Route,
    Server,
    Step,
    chat,
    delta,
    event,
    events,
    json_reply,
    running,
)
from waiting import until

from engine_adapter.errors import GenerationError
from engine_adapter.transport import Event, EventDecoder, HttpClient, Timeouts

ROUTE = "/chat/completions"
PATIENT = Timeouts()


def stream(
    url: str, timeouts: Timeouts = PATIENT, **settings: int
) -> tuple[list[float], list[str]]:
    """Return the stamps and texts of one stream."""

    async def collect() -> tuple[list[float], list[str]]:
        stamps, texts = [], []
        async with (
            aclosing(HttpClient(url, timeouts=timeouts, **settings)) as client,
            client.stream(ROUTE, {"model": "m"}) as opened,
        ):
            async for found in opened.objects():
                text = (found.body["choices"] or [{"delta": {}}])[0]["delta"].get("content")
                if text:
                    stamps.append(found.at_s)
                    texts.append(text)
        return stamps, texts

    return asyncio.run(collect())


def failure(reply: Reply, timeouts: Timeouts = PATIENT, **settings: int) -> GenerationError:
    with running(Route(reply)) as server, pytest.raises(GenerationError) as caught:
        stream(server.url, timeouts, **settings)
    assert "\n" not in str(caught.value)
    return caught.value


def test_stamps_are_when_the_bytes_arrived() -> None:
    """Each chunk's stamp lies after the server's write, and before the next one's."""
    with running(Route(chat(["a", "b", "c"], ttft_s=0.05, gap_s=0.03))) as server:
        stamps, texts = stream(server.url)
        (received,) = server.log()
    assert texts == ["a", "b", "c"]
    written = received.written_s[1:4]
    assert all(at >= wrote for at, wrote in zip(stamps, written, strict=True))
    assert all(at < later for at, later in zip(stamps[:2], written[1:], strict=True))


def test_a_busy_client_does_not_move_the_stamps() -> None:
    """The kernel stamps: while this process computes, chunks keep the times at which they came."""

    async def busy(server: Server) -> list[float]:
        stamps = []
        async with (
            aclosing(HttpClient(server.url, timeouts=PATIENT)) as client,
            client.stream(ROUTE, {}) as opened,
            aclosing(opened.events()) as found,
        ):
            async for one in found:
                if "content" in one.data and '"content": ""' not in one.data:
                    stamps.append(one.at_s)
                    time.sleep(0.2)  # noqa: ASYNC251  # what a busy client does
        return stamps

    with running(Route(chat(["a", "b"], ttft_s=0.05, gap_s=0.02))) as server:
        stamps = asyncio.run(busy(server))
        (received,) = server.log()
    assert len(stamps) == 2
    late_s = [at - wrote for at, wrote in zip(stamps, received.written_s[1:3], strict=True)]
    assert statistics.fmean(late_s) < 0.1  # read 0.18 s late, the second one


def test_the_time_of_sending_is_known() -> None:
    """`sent_s` lies after the call and before the server had the request."""

    async def sent(server: Server) -> tuple[float, float | None]:
        async with aclosing(HttpClient(server.url, timeouts=PATIENT)) as client:
            before_s = time.perf_counter()
            async with client.stream(ROUTE, {}) as opened:
                return before_s, opened.sent_s

    with running(Route(chat(["a"]))) as server:
        before_s, sent_s = asyncio.run(sent(server))
        (received,) = server.log()
    assert before_s <= sent_s <= received.at_s


def test_a_stream_is_over_at_its_last_word() -> None:
    """A server that says `[DONE]` and keeps the connection open keeps nobody waiting."""
    steps = [event(delta({"content": "a"})), event(delta({"content": "b"}), 0.02), event("[DONE]")]
    with running(Route(events(steps, end="hang"))) as server:
        assert stream(server.url)[1] == ["a", "b"]


def test_what_came_before_a_break_is_there() -> None:
    """Each piece is handed over with its own time, and only then the failure is told."""
    stamps: list[float] = []

    async def read(url: str) -> None:
        async with (
            aclosing(HttpClient(url, timeouts=PATIENT)) as client,
            client.stream(ROUTE, {}) as opened,
        ):
            async for found in opened.objects():
                stamps.append(found.at_s)  # noqa: PERF401  # kept where the next one fails

    steps = [event(delta({"content": "a"}), 0.02) for _ in range(3)]
    with running(Route(events(steps, end="cut"))) as server:
        with pytest.raises(GenerationError, match="the answer broke off"):
            asyncio.run(read(server.url))
        (received,) = server.log()
    assert len(stamps) == 3
    assert all(at >= wrote for at, wrote in zip(stamps, received.written_s, strict=True))


def test_a_stream_that_is_left_early_is_closed() -> None:
    """Whoever stops reading frees the engine: its connection is gone."""

    async def leave(server: Server) -> None:
        async with aclosing(HttpClient(server.url, timeouts=PATIENT)) as client:
            async with client.stream(ROUTE, {}) as opened:
                async for _ in opened.events():
                    break
            await asyncio.to_thread(until, lambda: server.log()[0].cut)

    with running(Route(chat(["a"] * 10_000, gap_s=0.02))) as server:
        asyncio.run(leave(server))


def test_a_kept_connection_that_is_cut_is_replaced() -> None:
    """llama.cpp closes behind each stream without a word: what was sent meanwhile is sent again."""
    taken: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(b'{"model": "m"}'))
        taken.append(len(taken))
        if len(taken) < 20:
            body = b"data: [DONE]\n\n"
            head = (
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
            )
            writer.write(head + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        writer.close()

    async def scenario() -> str:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        client = HttpClient(f"http://{host}:{port}", timeouts=PATIENT)
        async with server:
            for _ in range(19):
                async with client.stream(ROUTE, {"model": "m"}) as opened:
                    assert [found async for found in opened.events()]
            await asyncio.sleep(0.1)  # the kept connection is gone by now
            with pytest.raises(GenerationError) as caught:
                async with client.stream(ROUTE, {"model": "m"}):
                    pass
            await client.aclose()
        return caught.value.error_type

    assert asyncio.run(scenario()) == "connection_reset"
    assert len(taken) == 20  # a new connection's request is not sent twice


def test_a_connection_is_used_again() -> None:
    """Requests one after another share a connection: each port of the client is one."""

    async def three(server: Server) -> None:
        async with aclosing(HttpClient(server.url, timeouts=PATIENT)) as client:
            for _ in range(3):
                assert (await client.post(ROUTE, {"a": 1})).json() == {"ok": True}

    with running(Route(json_reply({"ok": True}))) as server:
        asyncio.run(three(server))
        assert [entry.body for entry in server.log()] == [{"a": 1}] * 3


@pytest.mark.parametrize(
    ("reply", "error_type", "words"),
    [
        (json_reply({"error": {"message": "bad key"}}, 401), "unauthorized", "bad key; put the"),
        (json_reply({"detail": "not yours"}, 403), "forbidden", "not yours; the key may not"),
        (
            json_reply({"error": {"message": "The model `x` does not exist."}}, 404),
            "model_not_found",
            "does not exist",
        ),
        (json_reply({"detail": "Not Found"}, 404), "not_found", "it often ends in /v1"),
        (
            json_reply({"message": "maximum context length is 128 tokens"}, 400),
            "context_length_exceeded",
            "128 tokens",
        ),
        (json_reply({"error": "min_p"}, 400), "invalid_request", "answered 400: min_p"),
        (json_reply({"error": "slow"}, 429, retry_after="3"), "rate_limited", "to wait for 3 s"),
        (json_reply({"error": "died"}, 500), "server_error", "answered 500: died"),
        (
            Reply([Step.of(b"<html>Sign in</html>")], headers={"content-type": "text/html"}),
            "html_answer",
            "a gateway or a login",
        ),
        (json_reply(delta({"content": "a"})), "unexpected_content_type", "application/json"),
        (events([event(delta({"content": "a"}))]), "stream_truncated", "without `data: [DONE]`"),
        (events([event("a")], end="cut"), "invalid_json", "an event is not JSON: 'a'"),
        (events([event([1])]), "invalid_json", "wanted an object"),
        (
            events([event(delta({"content": "a"})), Step.of(b"data: {", 0.05)]),
            "stream_truncated",
            "ended within an event",
        ),
        (
            events([event(delta({"content": "a"})), Step.of(b"data", 0.05)], end="cut"),
            "stream_truncated",
            "broke off",
        ),
        (
            events([event(delta({"content": "a"})), event({"error": {"message": "OOM"}}, 0.05)]),
            "server_error_in_stream",
            "failed in the middle: OOM",
        ),
        (events([Step.of(b"data: \xff\xfe\n\n")]), "invalid_utf8", "is not UTF-8"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_failure_has_a_name(reply: Reply, error_type: str, words: str) -> None:
    """The type is stable, and the message says what was seen, where, and what to do."""
    error = failure(reply)
    assert (error.error_type, words in str(error)) == (error_type, True), str(error)


def test_a_429_tells_how_long_to_wait() -> None:
    """Status and Retry-After are there for who wants to come back."""
    error = failure(json_reply({"error": "slow"}, 429, retry_after="3"))
    assert (error.status, error.retry_after_s) == (429, 3.0)


def test_an_event_beyond_the_limit_is_refused() -> None:
    """A server that streams without end in one event does not fill the memory."""
    reply = events([Step.of(b"data: " + b"x" * 600) for _ in range(4)])
    assert failure(reply, max_event_bytes=1000).error_type == "event_too_large"


@pytest.mark.parametrize(
    ("reply", "timeouts", "error_type"),
    [
        (events([], end="hang"), Timeouts(first_byte_s=0.1), "first_byte_timeout"),
        (
            events([event(delta({"content": "a"}))], end="hang"),
            Timeouts(idle_s=0.1, first_byte_s=3600, total_s=3600),
            "idle_timeout",
        ),
        (chat(["a"] * 99, gap_s=0.02), Timeouts(total_s=0.2), "total_timeout"),
    ],
)
def test_each_phase_has_a_deadline(reply: Reply, timeouts: Timeouts, error_type: str) -> None:
    """Which deadline passed is said."""
    assert failure(reply, timeouts).error_type == error_type


def test_a_stream_may_last_longer_than_its_pieces_are_given() -> None:
    """The time between two pieces counts anew from each."""
    with running(Route(chat(["a"] * 60, gap_s=0.05))) as server:
        _, texts = stream(server.url, Timeouts(idle_s=2.0))
    assert texts == ["a"] * 60


def asked(url: str) -> str:
    with pytest.raises(GenerationError) as caught:
        stream(url)
    return caught.value.error_type


def test_nobody_there(free_port: object) -> None:
    """Refused, unknown and unreachable hosts are told apart."""
    assert callable(free_port)
    assert asked(f"http://127.0.0.1:{free_port()}") == "connection_refused"
    assert asked(f"http://localhost:{free_port()}") == "connection_refused"
    assert asked("http://no-such-host.invalid/v1") == "dns_failure"


@pytest.mark.parametrize(
    ("scheme", "answer", "error_type"),
    [
        ("http", b"SSH-2.0-OpenSSH\r\n\r\n", "not_http"),
        ("http", b"", "connection_reset"),
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "tls_failure"),
    ],
)
def test_a_stranger_on_the_port(scheme: str, answer: bytes, error_type: str) -> None:
    """What speaks no HTTP, hangs up, or knows no TLS, is named."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert asked(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v1") == error_type
        thread.join()


class TestDecoder:
    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
    def test_any_cut_gives_the_same_events(self, newline: str, size: int) -> None:
        """Wherever the bytes are cut and however lines end, the events are the same."""
        lines = [": ping", "", "data: ä", "", "event: x", "data: 1", "data:2", "", "id: 3", "", ""]
        raw = newline.join(lines).encode()
        decoder = EventDecoder()
        found: list[Event] = []
        for start in range(0, len(raw), size):
            found += decoder.feed(raw[start : start + size], 1.5)
        assert found == [Event("ä", None, 1.5), Event("1\n2", "x", 1.5)]
        assert decoder.pending == b""


def test_the_stream_offers_its_status_and_headers() -> None:
    """What a server says in headers is there before the first event."""

    async def headers(url: str) -> tuple[int, str]:
        async with aclosing(HttpClient(url)) as client, client.stream(ROUTE, {}) as opened:
            return opened.status, opened.headers["x-queue-time"]

    reply = events([event("[DONE]")])
    named = Reply(reply.steps, headers={**reply.headers, "x-queue-time": "12"})
    with running(Route(named, path=OPENAI)) as server:
        assert asyncio.run(headers(server.url)) == (200, "12")
