"""OTLP over gRPC, in the event loop of the HTTP server."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from google.rpc.code_pb2 import Code

from collector.access.credentials import key_text
from collector.api.access import authorize
from collector.api.codings import too_large
from collector.api.otlp_http import store_body
from collector.api.state import State
from collector.api_key import Scope
from collector.errors import CollectorError, MediaTypeError
from collector.ingest import export
from collector.ingest.export import Sender
from collector.ingest.signals import SIGNALS, Signal
from collector.otlp.body import Encoding
from collector.serving.connections import Connections
from collector.serving.grpc_call import Call, CallRefusedError
from collector.serving.grpc_connection import GrpcConnection
from collector.serving.grpc_reply import CallReply, answered, internal_error, refused
from collector.serving.tls import accepting

_SIGNALS: Final[Mapping[str, Signal]] = {f"/{one.service}/Export": one for one in SIGNALS}
_BACKLOG: Final = 2048
_MOST_TAKEN: Final = 16
"""Most messages that are worked on at once; senders that have gone meanwhile leave the queue."""

_log = logging.getLogger(__name__)


class GrpcServer:
    """A gRPC server on a listening socket; use only in the event loop."""

    def __init__(
        self,
        listener: socket.socket,
        collector: State,
        connections: Connections,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._collector = collector
        self._connections = connections
        turns = asyncio.Semaphore(_MOST_TAKEN)
        connect = partial(GrpcConnection, connections, self._serve, turns)
        self._protocol = accepting(connections, tls, connect)
        self._server: asyncio.Server | None = None
        self._pending: set[asyncio.Task[Any]] = set()
        """Tasks of calls that are not answered."""

    async def start(self) -> None:
        """Answer exports from now on."""
        self._server = await asyncio.get_running_loop().create_server(
            self._protocol, sock=self._listener, backlog=_BACKLOG
        )

    async def stop(self, grace_s: float) -> None:
        """Refuse new exports, and wait up to `grace_s` for pending ones to be answered."""
        if self._server is None:
            return
        self._server.close()
        self._connections.drain()
        if self._pending:
            await asyncio.wait(self._pending, timeout=grace_s)
        self._connections.abort()

    async def _serve(self, call: Call) -> CallReply:
        if task := asyncio.current_task():
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)
        try:
            signal = _SIGNALS.get(call.headers.get(":path", ""))
            if signal is None:
                return refused(CallRefusedError(Code.UNIMPLEMENTED, "no such method").status)
            with self._collector.exporter.counting_refusals(signal):
                return await self._export(signal, call)
        except MediaTypeError as error:
            return refused(CallRefusedError(Code.UNIMPLEMENTED, str(error)).status)
        except CollectorError as error:
            return refused(export.status_of(error))
        except Exception:
            _log.exception("unexpected error")
            return internal_error()

    async def _export(self, signal: Signal, call: Call) -> CallReply:
        collector = self._collector
        grant = await authorize(collector.authority, key_text(call.headers), Scope.INGEST)
        announced_bytes = await call.announced_bytes()
        if announced_bytes > collector.settings.max_body_bytes:
            raise too_large(collector.settings.max_body_bytes)
        collector.ingest.admission.check(announced_bytes)
        sender = Sender(judges=Scope.JUDGE in grant.scopes, key_id=grant.key_id)
        async with call.message() as body:
            answer = await store_body(
                collector, signal, body, call.coding, Encoding.PROTOBUF, sender=sender
            )
        return answered(answer)
