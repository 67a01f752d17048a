"""OTLP over gRPC, in its own threads beside the HTTP server.

Threads instead of gRPC's event loop: 1.5 times the rate of small exports, and decoding needs no
switch to another thread.
"""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
from google.protobuf.message import Message
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from collector.access import Authority
from collector.access.credentials import key_text
from collector.api_key import Scope
from collector.errors import CollectorError, SettingsError
from collector.ingest import export
from collector.ingest.export import Exporter, Sender
from collector.ingest.signals import SIGNALS, Signal
from collector.otlp.body import Encoding
from collector.serving.grpc_connections import GrpcConnections
from collector.serving.message_wait import MessageWait
from collector.settings import Settings

REMEDY = "stop what runs there, pass another --grpc-port, or --no-grpc to do without gRPC"
"""The remedy in the error for a port in use."""

_THREADS = 128
"""Started on demand; most of them wait for a message or a commit."""
_MOST_WAITING = 96
_MOST_CALLS = 2048
"""Beyond it, calls are refused with RESOURCE_EXHAUSTED."""
_BOUNDS = (
    ("grpc.server_handshake_timeout_ms", 10_000),  # for TLS, and for HTTP/2 to begin
    ("grpc.max_connection_idle_ms", 20_000),
    # Bytes of a message that may arrive before a thread reads it.
    ("grpc.http2.lookahead_bytes", 16 * 1024),
    ("grpc.http2.bdp_probe", 0),
)
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_LATE = "no whole message came in time; send it again"
_BUG = "an error in the collector; its log says which"

_log = logging.getLogger(__name__)


class GrpcServer:
    """A gRPC server that binds its port at once and serves after `start`."""

    def __init__(self, settings: Settings) -> None:
        """Bind the address; raises `SettingsError` if that fails."""
        assert settings.grpc_port is not None  # noqa: S101  # checked by the caller
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="draftgate-grpc"),
            options=[
                # Otherwise a second collector could share the port, and get half of the spans.
                ("grpc.so_reuseport", 0),
                # Applies to the message as sent and as decompressed.
                ("grpc.max_receive_message_length", settings.max_body_bytes),
                # New connections are accepted, and others closed for them.
                ("grpc.max_allowed_incoming_connections", 2 * settings.max_connections),
                *_BOUNDS,
            ],
            maximum_concurrent_rpcs=_MOST_CALLS,
        )
        connections = GrpcConnections(
            settings.max_connections, settings.max_connections_per_address
        )
        self._wait = MessageWait(_MOST_WAITING, connections)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        try:
            self.port = self._bind(f"{host}:{settings.grpc_port}", settings)
        except RuntimeError as exc:
            raise SettingsError(
                f"cannot listen on {settings.host} port {settings.grpc_port}; {REMEDY}"
            ) from exc

    def _bind(self, address: str, settings: Settings) -> int:
        if settings.tls_cert is None or settings.tls_key is None:
            return self._server.add_insecure_port(address)
        pair = (settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())
        return self._server.add_secure_port(address, grpc.ssl_server_credentials([pair]))

    def start(self, exporter: Exporter, authority: Authority) -> None:
        """Answer exports from now on."""
        self._server.add_generic_rpc_handlers(
            [_Handlers(signal, partial(self._export, exporter, authority)) for signal in SIGNALS]
        )
        self._wait.start(self.port)
        self._server.start()

    def stop(self, grace_s: float) -> None:
        """Refuse new exports, and wait up to `grace_s` for pending ones to be answered."""
        self._server.stop(grace_s).wait()
        self._wait.stop()

    def _export(
        self,
        exporter: Exporter,
        authority: Authority,
        signal: Signal,
        arrived_s: float,
        requests: Iterator[bytes],
        context: grpc.ServicerContext,
    ) -> bytes:
        try:
            with exporter.counting_refusals(signal):
                # First, so that a sender without a key cannot make the library buffer a message.
                grant = authority.authorize(key_text(_texts(context)), Scope.INGEST)
                body = self._wait.message(requests, context, arrived_s)
                if body is not None:
                    sender = Sender(judges=Scope.JUDGE in grant.scopes, key_id=grant.key_id)
                    return _to_bytes(
                        exporter.export_blocking(signal, body, Encoding.PROTOBUF, sender=sender)
                    )
        except CollectorError as exc:
            return _refuse(context, export.status_of(exc))
        except Exception:
            # Otherwise gRPC would send the exception's text with the status UNKNOWN.
            _log.exception("unexpected error")
            context.abort(grpc.StatusCode.INTERNAL, _BUG)
        finally:
            self._wait.ended(context)
        return _refuse(context, Status(code=Code.CANCELLED, message=_LATE))


class _Handlers(grpc.GenericRpcHandler):
    """The handler of one signal's calls."""

    def __init__(
        self,
        signal: Signal,
        answer: Callable[[Signal, float, Iterator[bytes], grpc.ServicerContext], bytes],
    ) -> None:
        self._method = f"/{signal.service}/Export"
        self._answer = partial(answer, signal)

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        """Return the handler of a call; called by the library once its head has arrived.

        Bytes in, bytes out: the exporter decodes, as for HTTP. Declared as a stream, so that the
        handler starts before the message is complete.
        """
        if handler_call_details.method != self._method:
            return None
        return grpc.stream_unary_rpc_method_handler(partial(self._answer, time.monotonic()))


def _texts(context: grpc.ServicerContext) -> dict[str, str]:
    """Return the request's text metadata for `key_text`."""
    return {key: text for key, text in context.invocation_metadata() if isinstance(text, str)}


def _refuse(context: grpc.ServicerContext, status: Status) -> bytes:
    """Abort with an error, in the trailers that gRPC and the OpenTelemetry SDKs read."""
    trailers: tuple[tuple[str, bytes], ...] = (("grpc-status-details-bin", _to_bytes(status)),)
    retry = RetryInfo()
    if any(detail.Unpack(retry) for detail in status.details):
        trailers += (("google.rpc.retryinfo-bin", _to_bytes(retry)),)
    context.set_trailing_metadata(trailers)
    context.abort(_CODES[status.code], status.message)


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped
