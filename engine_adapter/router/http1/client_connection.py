"""One client connection: read whole requests from it and answer them in order.

A request is handled up to its first wait in the same call that reads its last byte: a new task
would start only after everything else that the event loop has to run.
"""

import asyncio
import logging
import re
import socket
import time
import types
from collections import deque
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Final, NamedTuple, Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from engine_adapter.errors import RefusedRequestError
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.http1.client_answer import ClientAnswer
from engine_adapter.router.http1.client_request import ClientRequest
from engine_adapter.router.transport import Header
from listening.open_connections import OpenConnections

_HEAD_BYTES: Final = 1 << 16
"""Limit on a request's head, and on chunk framing and trailers received without any body data."""
_MOST_HEADERS: Final = 100
_SLICE_BYTES: Final = 1 << 13
"""Parsed at once: in chunks of two bytes, that takes a millisecond or two."""
_READ_S: Final = 0.002
"""One connection is parsed no longer than this before the event loop serves others."""
_ONCE: Final = (b"host", b"content-length", b"transfer-encoding")
"""Headers that must not be repeated: two servers could each pick a different value."""
_ORIGIN: Final = re.compile(r"^https?://[^/?#]*", re.IGNORECASE)
"""Start of an absolute request target, which a client sends if it uses this server as a proxy."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LINGER_S: Final = 10.0
"""How long the client of a refused request may keep sending, so that it can read the refusal."""


class _QueuedRequest(NamedTuple):
    """A request that waits for its response."""

    request: ClientRequest
    refused: RefusedRequestError | None
    """Why it is refused; `None` if it was admitted."""


class RequestHandler(Protocol):
    """Answers requests; only `answer` may wait."""

    def admit(self, request: ClientRequest) -> None:
        """Admit a request by its head; raises `RefusedRequestError`."""

    def refuse(self, refused: RefusedRequestError, answer: ClientAnswer) -> None:
        """Answer a request that was not admitted or cannot be parsed."""

    def answer(self, request: ClientRequest, answer: ClientAnswer) -> Coroutine[Any, Any, None]:
        """Answer a whole request; from its first wait on, it runs in a task."""

    def finish(self, answer: ClientAnswer | None) -> None:
        """Note that an admitted request is over; `None` if it never arrived whole."""


class ClientConnection(asyncio.Protocol):
    """Reads requests and has them answered one by one.

    `httptools` finds its callbacks, `on_…`, by name, and turns an exception that one raises into
    a parser error.
    """

    def __init__(
        self,
        handler: RequestHandler,
        body_bytes: int,
        connections: OpenConnections["ClientConnection"],
        deferred: DeferredWork,
        logger: logging.Logger,
    ) -> None:
        """Join `connections` until `closed`; parsing that takes long continues in `deferred`."""
        self._handler = handler
        self._most_bytes = body_bytes
        self._connections = connections
        self._deferred = deferred
        self._logger = logger
        self.address = ""
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done once the client has disconnected and its last request is finished."""
        self._transport: asyncio.Transport | None = None
        self._parser = HttpRequestParser(self)
        self._target = b""
        self._headers: list[Header] = []
        self._reading: ClientRequest | None = None
        """The request whose head was parsed and whose body is still arriving."""
        self._refused: RefusedRequestError | None = None
        """Why that request is refused."""
        self._in_message = False
        self._head_bytes = 0
        self._bodyless_bytes = 0
        """Bytes of the head, or received since the last piece of body."""
        self._unparsed = b""
        """Received and not parsed yet."""
        self._queue: deque[_QueuedRequest] = deque()
        """Whole requests that wait for their turn."""
        self._discards_input = False
        """Whether bytes that still arrive are thrown away."""
        self._answer: ClientAnswer | None = None
        """The response in progress."""
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self._drain: asyncio.Future[None] | None = None
        self._is_full = False
        self._stopping = False
        self._saw_request = False
        self.since_s = 0.0
        """When it last became idle or a request last began to arrive, by the loop's clock."""

    # Called by the listener

    @property
    def is_idle(self) -> bool:
        """Whether no request is arriving, queued or being answered."""
        return self._answer is None and not self._in_message and not self._queue

    @property
    def is_silent(self) -> bool:
        """Whether no request ever began to arrive."""
        return not self._saw_request

    @property
    def waits_for_peer(self) -> bool:
        """Whether nothing can happen until the client sends more."""
        return self.is_open and self._answer is None and not self._queue

    @property
    def is_leaving(self) -> bool:
        """Whether it is closing and only flushes what the client has not read yet."""
        return self._transport is not None and self._transport.is_closing()

    @property
    def waits_for_request(self) -> bool:
        """Whether a request is arriving and none is being answered."""
        return self._in_message and self._answer is None

    def refuse_unfinished(self, why: RefusedRequestError) -> None:
        """Refuse the request that is still arriving, then close the connection."""
        if self._in_message and not self._discards_input:
            self._refuse_rest(why)
            self._next()

    def stop(self, why: RefusedRequestError) -> None:
        """Take no more requests: close now, or after the response in progress."""
        self._stopping = True
        self.refuse_unfinished(why)
        if self.is_idle:
            self.cut()
        elif self._answer is not None:
            self._answer.keeps_alive = False

    def abort(self) -> None:
        """Close at once and cancel the request in progress."""
        if self._transport is not None:
            self._transport.abort()

    # Called by the answer

    @property
    def is_open(self) -> bool:
        """Whether data can be written."""
        return self._transport is not None and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send or buffer the data; drop it if the client has disconnected."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def takes_more(self) -> bool:
        """Return whether the client is connected and its write buffer is not full."""
        return self._transport is not None and not (self._is_full or self._transport.is_closing())

    async def drained(self) -> None:
        """Wait for room in the write buffer.

        Raises `ConnectionResetError` if the client has disconnected.
        """
        if self._transport is None:
            raise ConnectionResetError("the client went away")
        if not self._is_full:
            return
        if self._drain is None:
            self._drain = self._loop.create_future()
        await self._drain

    def cut(self) -> None:
        """Close the connection after flushing the write buffer."""
        self._discards_input = True
        if self._transport is not None:
            self._transport.close()

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection and turn on TCP keepalive."""
        self._transport = transport  # type: ignore[assignment]  # asyncio passes a `Transport`
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.since_s = self._loop.time()
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's
        """Cancel the request in progress and drop the queued ones."""
        self._transport = None
        self._end_waiting()
        self._stop_reading()
        for queued in self._queue:
            if queued.refused is None:
                self._handler.finish(None)
        self._queue.clear()
        if self._task is not None:  # after its first step, so that the coroutine's cleanup runs
            self._loop.call_soon(self._task.cancel)
        else:
            self._close()

    def pause_writing(self) -> None:
        """Note that the write buffer is full."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Note that the write buffer has room again."""
        self._is_full = False
        self._end_waiting()

    def data_received(self, data: bytes) -> None:
        """Parse requests and begin to answer the first."""
        if self._unparsed:
            self._unparsed += data
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        until_s, at = time.perf_counter() + _READ_S, 0
        while at < len(data) and not self._discards_input:
            if at and time.perf_counter() > until_s:
                self._unparsed = data[at:]
                self._deferred.add(self._read_unparsed)
                break
            at = self._read_slice(data, at)
        if self._answer is None:
            self._next()
        else:
            self._pause_or_resume()

    def _read_unparsed(self) -> None:
        data, self._unparsed = self._unparsed, b""
        self._read(data)

    def _read_slice(self, data: bytes, at: int) -> int:
        """Parse a slice of the data that starts at `at`; return where it ends."""
        end = at + min(_SLICE_BYTES, _HEAD_BYTES - self._bodyless_bytes)
        if end == at:
            self._refuse_rest(_HEAD_TOO_LARGE if self._reading is None else _FRAMES_TOO_LARGE)
            return end
        piece = data[at:end]
        self._bodyless_bytes += len(piece)
        try:
            self._feed(piece)
        except HttpParserError:
            self._refuse_rest(_unreadable("the request cannot be read"))
        if self._refused is not None and self._in_message:
            self._refuse_rest(self._refused)
        return end

    def _pause_or_resume(self) -> None:
        """Pause reading while requests or unparsed bytes are queued."""
        is_behind = bool(self._unparsed) or (self._answer is not None and bool(self._queue))
        if is_behind == self._paused or not self.is_open or self._transport is None:
            return
        self._paused = is_behind
        if is_behind:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # httptools' callbacks

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._in_message = not self._discards_input
        self._saw_request = True
        self._target = b""
        self._headers = []
        self._head_bytes = 0
        self._restart_wait()

    def on_url(self, part: bytes) -> None:
        """Take the request target, or a part of it."""
        self._target += part
        self._head_bytes += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are ignored."""
        if self._reading is None:
            self._headers.append((name, value.rstrip(b" \t")))
            self._head_bytes += len(name) + len(value) + len(b": \r\n")

    def on_headers_complete(self) -> None:
        """Admit or refuse the request."""
        if self._discards_input:
            return
        version = self._parser.get_http_version()
        target = self._target.decode("utf-8", "surrogateescape")
        request = self._reading = ClientRequest(
            method=self._parser.get_method().decode("ascii"),
            target=target if target.startswith("/") else _ORIGIN.sub("", target, count=1),
            is_http_1_1=version == "1.1",
            keeps_alive=self._parser.should_keep_alive(),
            raw_headers=self._headers,
        )
        self._bodyless_bytes = 0
        self._head_bytes += len(request.method) + len("  HTTP/1.1\r\n\r\n")
        if self._head_bytes > _HEAD_BYTES or len(self._headers) > _MOST_HEADERS:
            self._refused = _HEAD_TOO_LARGE
        else:
            upgrade = self._parser.should_upgrade()
            self._refused = _ambiguity(request, version, offers_upgrade=upgrade)
        if self._refused is not None:
            request.keeps_alive = False
            return
        try:
            self._handler.admit(request)
        except RefusedRequestError as refused:
            self._refused = refused
            return
        expected = request.headers.get("expect")
        if expected is not None and expected.lower() == "100-continue":
            self._send_continue(request)

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        self._bodyless_bytes = 0
        request = self._reading
        if self._refused is not None or request is None:
            return
        request.add(data)
        if request.body_bytes > self._most_bytes:
            request.drop_body()
            self._handler.finish(None)
            self._refused = RefusedRequestError(
                413,
                "request_too_large",
                f"the request's body has more than {self._most_bytes} bytes",
            )

    def on_message_complete(self) -> None:
        """Queue the request, or its refusal."""
        self._in_message = False
        self._bodyless_bytes = 0
        request, self._reading = self._reading, None
        if request is not None:
            self._queue.append(_QueuedRequest(request, self._refused))
            self._refused = None
            self._discards_input = not request.keeps_alive

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:  # a server may ignore the offer
            self._parser = HttpRequestParser(self)
            if rest := data[upgrade.args[0] :]:
                self._feed(rest)

    def _send_continue(self, request: ClientRequest) -> None:
        if request.is_http_1_1 and self._answer is None and not self._queue:
            self.write(_CONTINUE)

    def _stop_reading(self) -> None:
        """Stop reading and drop the request that is still arriving."""
        self._discards_input = True
        if self._reading is not None and self._refused is None:
            self._handler.finish(None)
        self._reading = None

    def _refuse_rest(self, why: RefusedRequestError) -> None:
        """Answer the whole requests, then refuse the one that is still arriving, and close."""
        if not self._discards_input:
            request = self._reading or _NOTHING
            self._stop_reading()
            request.keeps_alive = False
            self._queue.append(_QueuedRequest(request, why))

    # Answers

    def _next(self) -> None:
        """Begin to answer the next request; repeat while responses complete without waiting."""
        while self._queue and self._answer is None and self.is_open:
            request, refused = self._queue.popleft()
            answer = ClientAnswer(
                self,
                is_http_1_1=request.is_http_1_1,
                bodyless=request.method == "HEAD",
                keeps_alive=request.keeps_alive and not self._stopping,
            )
            if refused is not None:
                self._handler.refuse(refused, answer)
                self._close_behind(answer)
            else:
                self._answer = answer
                self._begin(request, answer)
        self._pause_or_resume()

    def _begin(self, request: ClientRequest, answer: ClientAnswer) -> None:
        """Run the handler up to its first wait, and the rest in a task."""
        answering = self._handler.answer(request, answer)
        try:
            waits_for = answering.send(None)
        except StopIteration:
            self._finish(answer)
        except Exception:
            self._fault(answer)
            self._finish(answer)
        else:
            self._task = self._loop.create_task(self._rest(_resumed(answering, waits_for), answer))

    async def _rest(self, answering: Awaitable[None], answer: ClientAnswer) -> None:
        try:
            await answering
        except ConnectionError:
            self.cut()
        except Exception:
            self._fault(answer)
        finally:
            self._task = None
            self._finish(answer)
        self._next()

    def _fault(self, answer: ClientAnswer) -> None:
        """Log an error of the router itself; answer 500, or cut a response that has begun."""
        self._logger.exception("a request could not be answered")
        if answer.is_unsent:
            self._handler.refuse(_FAULT, answer)
        else:
            self.cut()

    def _finish(self, answer: ClientAnswer) -> None:
        """Release a response, whether complete or not."""
        self._answer = None
        self._handler.finish(answer)
        self._restart_wait()
        self._close_behind(answer)
        if self._transport is None:
            self._close()

    def _close_behind(self, answer: ClientAnswer) -> None:
        """Close the connection after a response that is incomplete or the last one."""
        if answer.has_ended and answer.keeps_alive:
            return
        if answer.has_ended and self._in_message and self.is_open and self._transport is not None:
            # Closing now, while the client still sends, would reset the connection before the
            # client reads the response.
            self._transport.write_eof()
            self._loop.call_later(_LINGER_S, self.cut)
        else:
            self.cut()

    def _restart_wait(self) -> None:
        self.since_s = self._loop.time()
        self._connections.restart_wait(self)

    def _close(self) -> None:
        self._connections.discard(self)
        if not self.closed.done():
            self.closed.set_result(None)

    def _end_waiting(self) -> None:
        drain, self._drain = self._drain, None
        if drain is not None and not drain.done():
            if self._transport is None:
                drain.set_exception(ConnectionResetError("the client went away"))
            else:
                drain.set_result(None)


@types.coroutine
def _resumed(coroutine: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Continue a coroutine in a task from the future that it waits for."""
    yield waits_for
    yield from coroutine


_NOTHING: Final = ClientRequest(
    method="", target="", is_http_1_1=True, keeps_alive=False, raw_headers=()
)
"""Stands for the request if its head could not be parsed."""
_HEAD_TOO_LARGE: Final = RefusedRequestError(
    431,
    "head_too_large",
    f"the request's head has more than {_HEAD_BYTES} bytes or {_MOST_HEADERS} headers",
)
_FRAMES_TOO_LARGE: Final = RefusedRequestError(
    400, "bad_request", f"the body's frames have more than {_HEAD_BYTES} bytes in a row"
)
_FAULT: Final = RefusedRequestError(500, "internal_error", "the router failed")


def _ambiguity(
    request: ClientRequest, version: str, *, offers_upgrade: bool
) -> RefusedRequestError | None:
    """Return a refusal if two servers could read the request differently, else `None`."""
    headers = request.headers
    coding = headers.get("transfer-encoding")
    has_body = coding is not None or "content-length" in headers
    if offers_upgrade and (has_body or request.method == "CONNECT"):  # body, or upgraded protocol?
        return _unreadable("a request that offers an upgrade has no body here")
    if _says_twice(request):
        return _unreadable("the request says twice to whom it goes, or how long it is")
    if version not in ("1.0", "1.1"):
        return _unreadable("the request is not of HTTP/1.1")
    if "host" not in headers and request.is_http_1_1:
        return _unreadable("the request has no Host")
    if coding is not None and (coding.lower() != "chunked" or not request.is_http_1_1):
        return _unreadable("the request's Transfer-Encoding is not `chunked`")
    return None


def _says_twice(request: ClientRequest) -> bool:
    headers = request.headers
    if "transfer-encoding" in headers and "content-length" in headers:
        return True
    if len(headers) == len(request.raw_headers):
        return False
    names = [name.lower() for name, _ in request.raw_headers]
    return any(names.count(name) > 1 for name in _ONCE)


def _unreadable(words: str) -> RefusedRequestError:
    return RefusedRequestError(400, "bad_request", words)
