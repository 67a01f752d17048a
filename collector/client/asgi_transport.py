"""An httpx transport that serves an ASGI application in this process, synchronously."""

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any

import anyio
import httpx
from anyio.from_thread import BlockingPortal
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

_PIECES_AHEAD = 2
_Message = dict[str, Any]  # Any: values of an ASGI message


class InProcessTransport(httpx.BaseTransport):
    """Runs an application's lifespan and requests on an event loop in its own thread."""

    def __init__(self, app: Any, lifespan: AbstractAsyncContextManager[Any]) -> None:
        """Enter the lifespan; its errors propagate.

        `app` is an ASGI application (Any: it has no common type).
        """
        self._app = app
        with ExitStack() as stack:
            self._portal = _start_portal()
            stack.callback(lambda: self._portal.call(self._portal.stop))
            stack.enter_context(self._portal.wrap_async_context_manager(lifespan))
            self._open = stack.pop_all()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response, whose body is produced as it is read.

        If the application fails after the response has started, reading raises
        `RemoteProtocolError`, as for a server that closes the connection.
        """
        sent, received = anyio.create_memory_object_stream[_Message](_PIECES_AHEAD)
        call = _Call(self._app, request, request.read(), sent)
        running = self._portal.start_task_soon(call.run)
        body = _Body(self._portal, received, call, running)
        start = body.next()
        if start is None:
            body.close()
            raise httpx.RemoteProtocolError("the application gave no answer")
        return httpx.Response(start["status"], headers=start["headers"], stream=body)

    def close(self) -> None:
        """Leave the lifespan and end the thread; may be called twice."""
        self._open.close()


class _Call:
    """One request to the application, whose messages go to a bounded stream."""

    def __init__(
        self,
        app: Any,  # Any: an ASGI application
        request: httpx.Request,
        body: bytes,
        sent: MemoryObjectSendStream[_Message],
    ) -> None:
        self._app = app
        self._request = request
        self._body: bytes | None = body
        self._sent = sent
        self.answered = False
        """Whether the response is complete."""

    async def run(self) -> None:
        """Run the application."""
        async with self._sent:
            await self._app(self._scope(), self._receive, self._send)

    async def _receive(self) -> _Message:
        if self._body is None:
            await anyio.sleep_forever()  # no disconnect: the client closes the response instead
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: _Message) -> None:
        if message["type"] == "http.response.start" or message.get("body"):
            await self._sent.send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.answered = True

    def _scope(self) -> _Message:
        url = self._request.url
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self._request.method,
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.split(b"?")[0],
            "query_string": url.query,
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 0),
            "root_path": "",
        }


class _Body(httpx.SyncByteStream):
    """The messages that the application sends, one at a time."""

    def __init__(
        self,
        portal: BlockingPortal,
        received: MemoryObjectReceiveStream[_Message],
        call: _Call,
        running: Future[None],
    ) -> None:
        self._portal = portal
        self._received = received
        self._call = call
        self._running = running

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body's chunks."""
        while (message := self.next()) is not None:
            yield message["body"]
        failure = self._running.exception()
        # An application may raise after a complete response, as Starlette does after a 500.
        if not self._call.answered:
            raise httpx.RemoteProtocolError("the answer broke off") from failure

    def next(self) -> _Message | None:
        """Return the next message; None after the last."""
        try:
            return self._portal.call(self._received.receive)
        except anyio.EndOfStream:
            return None

    def close(self) -> None:
        """Cancel the request if it is not complete, and release it."""
        self._running.cancel()
        with contextlib.suppress(RuntimeError):  # the event loop may have ended
            self._portal.call(self._received.close)


def _start_portal() -> BlockingPortal:
    """Start an event loop in a daemon thread.

    anyio's start_blocking_portal keeps the interpreter alive until it is closed, so that a program
    that forgot to close a client would hang on exit.
    """
    started: Future[BlockingPortal] = Future()

    async def serve() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    threading.Thread(target=anyio.run, args=(serve,), name="draftgate-local", daemon=True).start()
    return started.result()
