"""An httpx transport that serves an ASGI application in this process, synchronously."""

import threading
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any

import anyio
import httpx
from anyio.from_thread import BlockingPortal


class InProcessTransport(httpx.BaseTransport):
    """Runs an application's lifespan and requests on an event loop in a thread of its own."""

    def __init__(self, app: Any, lifespan: AbstractAsyncContextManager[Any]) -> None:
        """Enter the lifespan; what it raises is raised here.

        `app` is any ASGI application, for which there is no type to name.
        """
        # Where the application fails, its answer is given, as by a server.
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        with ExitStack() as stack:
            self._portal = _start_portal()
            stack.callback(lambda: self._portal.call(self._portal.stop))
            stack.enter_context(self._portal.wrap_async_context_manager(lifespan))
            self._open = stack.pop_all()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        return self._portal.call(self._handle, request, request.read())

    def close(self) -> None:
        """Leave the lifespan and end the thread; may be called twice."""
        self._open.close()

    async def _handle(self, request: httpx.Request, body: bytes) -> httpx.Response:
        inner = httpx.Request(request.method, request.url, headers=request.headers, content=body)
        answer = await self._transport.handle_async_request(inner)
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=await answer.aread()
        )


def _start_portal() -> BlockingPortal:
    """Start an event loop in a daemon thread.

    anyio's own start_blocking_portal keeps the interpreter from ending until it is closed, so that
    a client which somebody forgot to close would hang its program at the end.
    """
    started: Future[BlockingPortal] = Future()

    async def serve() -> None:
        async with BlockingPortal() as portal:
            started.set_result(portal)
            await portal.sleep_until_stopped()

    threading.Thread(target=anyio.run, args=(serve,), name="draftgate-local", daemon=True).start()
    return started.result()
