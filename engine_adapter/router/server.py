"""The router's process: from settings and a control to a server that answers until it is stopped.

`serve` is the one entry. Each request's body is read whole, its facts are taken by `facts_of`, and
the control decides.
"""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from engine_adapter import garbage
from engine_adapter.collector_access import CollectorAccess
from engine_adapter.router.counts import Counts
from engine_adapter.router.decision import Control
from engine_adapter.router.export_queue import ExportQueue
from engine_adapter.router.proxy import Proxy
from engine_adapter.router.settings import RouterSettings

_FINISH_S = 30.0
"""How long streams in flight may go on once the router is told to stop."""
_BACKLOG = 1024
_COLLECT_AFTER = 20_000, 20, 100
"""New objects, and collections of the younger generation, before each generation's collection.

Little of what a request leaves behind is in cycles.
"""


def run(main: Coroutine[object, object, None]) -> None:
    """Run a router's coroutine to its end, on uvloop where there is one (not on Windows).

    It takes a sixth less processor time a chunk than asyncio's own loop.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


async def serve(
    settings: RouterSettings,
    control: Control,
    *,
    ready: Callable[[str], None] = lambda _url: None,
) -> None:
    """Answer requests until cancelled; `ready` is told the address once it is listening.

    On cancellation no new request is taken, and streams in flight get some time to finish.
    """
    async with running(settings, control) as url:
        gc.set_threshold(*_COLLECT_AFTER)
        with garbage.loaded_set_aside():
            ready(url)
            await asyncio.Event().wait()


@asynccontextmanager
async def running(settings: RouterSettings, control: Control) -> AsyncIterator[str]:
    """Listen while the block runs, and give the address."""
    counts = Counts()
    async with _exporting(settings, counts) as queue:
        proxy = Proxy(settings, control, queue, counts)
        server = web.Server(
            proxy.handle,
            request_factory=partial(_request, settings.limits.body_bytes),
            handler_cancellation=True,  # a client that leaves ends the engine's work
            access_log=None,
            logger=_logger(),
            auto_decompress=False,
        )
        runner = web.ServerRunner(server, shutdown_timeout=_FINISH_S)
        await runner.setup()
        try:
            site = web.TCPSite(runner, settings.host, settings.port, backlog=_BACKLOG)
            await site.start()
            host, port = runner.addresses[0][:2]
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
        finally:
            proxy.stop_taking()
            await runner.cleanup()
            await proxy.close()


@asynccontextmanager
async def _exporting(settings: RouterSettings, counts: Counts) -> AsyncIterator[ExportQueue | None]:
    """Send spans in the background while the block runs, and what is left after it."""
    if settings.collector_url is None:
        yield None
        return
    access = settings.collector_access or CollectorAccess.from_environment()
    queue = ExportQueue(settings.collector_url, access, settings.limits.spans, counts)
    task = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await queue.close()


def _logger() -> logging.Logger:
    """Return where failures of the server itself are logged."""
    logger = logging.getLogger("draftgate.router")
    if not any(isinstance(known, _Discreet) for known in logger.filters):
        logger.addFilter(_Discreet())
    return logger


class _Discreet(logging.Filter):
    """Leaves out requests that are not HTTP: the message quotes their bytes, keys included."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def _request(most_bytes: int, *given: object) -> web.BaseRequest:
    """Return a request whose body may be as large as the router's settings say."""
    message, payload, protocol, writer, task = given
    return web.BaseRequest(
        message,  # type: ignore[arg-type]  # what aiohttp gives its own factory
        payload,  # type: ignore[arg-type]
        protocol,  # type: ignore[arg-type]
        writer,  # type: ignore[arg-type]
        task,  # type: ignore[arg-type]
        asyncio.get_running_loop(),
        client_max_size=most_bytes,
    )
