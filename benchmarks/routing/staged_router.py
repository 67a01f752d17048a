"""The router's process, instrumented to record when a request and its first word pass.

python -m benchmarks.routing.staged_router BASELINE CANDIDATE SHARE NOTES

On SIGTERM it writes to NOTES, by request name, when the request was read, when it was sent to the
baseline, and when the engine's first word was read, by `time.perf_counter`.
"""

import asyncio
import json
import re
import signal
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.routing import router_process
from engine_adapter.router.http1.client_connection import ClientConnection
from engine_adapter.router.http1.engine_connection import EngineConnection
from engine_adapter.router.server import run

_NAME = re.compile(rb'"content": "(q\d+-\d+)"')
_WORD = b'"content": "w0 "'
_noted: dict[str, dict[str, float]] = {}
_asked: dict[int, str] = {}
"""The name of the request on a connection to the baseline, by the connection object's id."""


def _note(name: str, what: str) -> None:
    _noted.setdefault(name, {}).setdefault(what, time.perf_counter())


def _watch(port: int) -> None:
    """Instrument three methods to record their call times."""
    read, send, answered = (
        ClientConnection.data_received,
        EngineConnection.send,
        EngineConnection.data_received,
    )
    host = b"Host: 127.0.0.1:%d\r\n" % port

    def noted_read(self: ClientConnection, data: bytes) -> None:
        if found := _NAME.search(data):
            _note(found[1].decode(), "read")
        read(self, data)

    def noted_send(self: EngineConnection, *parts: bytes, bodyless: bool) -> None:
        found = _NAME.search(parts[-1])
        if found and host in parts[0]:
            _asked[id(self)] = found[1].decode()
            _note(_asked[id(self)], "sent")
        else:
            _asked.pop(id(self), None)
        send(self, *parts, bodyless=bodyless)

    def noted_answered(self: EngineConnection, data: bytes) -> None:
        if _WORD in data and id(self) in _asked:
            _note(_asked[id(self)], "answered")
        answered(self, data)

    ClientConnection.data_received = noted_read  # type: ignore[method-assign]
    EngineConnection.send = noted_send  # type: ignore[method-assign]
    EngineConnection.data_received = noted_answered  # type: ignore[method-assign]


async def _serve() -> None:
    serving = asyncio.create_task(router_process.main())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    await asyncio.gather(serving, return_exceptions=True)


if __name__ == "__main__":
    _watch(urlsplit(sys.argv[1]).port or 80)
    run(_serve())
    Path(sys.argv[4]).write_text(json.dumps(_noted))
