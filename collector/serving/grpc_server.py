"""OTLP over gRPC, in threads of its own beside the HTTP server.

Threads rather than gRPC's own event loop: a small export is answered half again as often, and what
a thread decodes needs no hop to another.
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
"""What to do where the port is taken."""

_THREADS = 128
"""Most wait for a message or a commit; they are started when they are needed."""
_MOST_WAITING = 96
_MOST_CALLS = 2048
"""Beyond it, a call is refused as RESOURCE_EXHAUSTED."""
_BOUNDS = (
    ("grpc.server_handshake_timeout_ms", 10_000),  # for TLS, and for HTTP/2 to begin
    ("grpc.max_connection_idle_ms", 20_000),
    # What may come of a message before a thread asks for it.
    ("grpc.http2.lookahead_bytes", 16 * 1024),
    ("grpc.http2.bdp_probe", 0),
)
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_LATE = "no whole message came in time; send it again"
_BUG = "an error in the collector; its log says which"

_log = logging.getLogger(__name__)


class GrpcServer:
    """A gRPC server that is bound at once, and serves once started."""

    def __init__(self, settings: Settings) -> None:
        """Bind the address; raises `SettingsError` where that cannot be done."""
        assert settings.grpc_port is not None  # noqa: S101  # the caller's to check
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="draftgate-grpc"),
            options=[
                # Or else a second collector would share the port, and each get half of the spans.
                ("grpc.so_reuseport", 0),
                # Holds for the message as sent and as inflated.
                ("grpc.max_receive_message_length", settings.max_body_bytes),
                # Newcomers come in, and others are ended for them.
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
        """Take no more exports, and return once those taken are answered or the time is over."""
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
                # First: nobody without a key makes the library keep a message.
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
            # Or else gRPC would send the exception's text, as UNKNOWN.
            _log.exception("unexpected error")
            context.abort(grpc.StatusCode.INTERNAL, _BUG)
        finally:
            self._wait.ended(context)
        return _refuse(context, Status(code=Code.CANCELLED, message=_LATE))


class _Handlers(grpc.GenericRpcHandler):
    """Answers the calls of one signal."""

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
        """Return what answers a call; said by the library once its head has come.

        Bytes in, bytes out: the exporter decodes, as it does for HTTP. As a stream, for of that a
        handler is told before its message is complete.
        """
        if handler_call_details.method != self._method:
            return None
        return grpc.stream_unary_rpc_method_handler(partial(self._answer, time.monotonic()))


def _texts(context: grpc.ServicerContext) -> dict[str, str]:
    """Return the request's metadata, as `key_text` reads it."""
    return {key: text for key, text in context.invocation_metadata() if isinstance(text, str)}


def _refuse(context: grpc.ServicerContext, status: Status) -> bytes:
    """Answer with an error, in the trailers that gRPC and the OpenTelemetry SDKs read."""
    trailers: tuple[tuple[str, bytes], ...] = (("grpc-status-details-bin", _to_bytes(status)),)
    retry = RetryInfo()
    if any(detail.Unpack(retry) for detail in status.details):
        trailers += (("google.rpc.retryinfo-bin", _to_bytes(retry)),)
    context.set_trailing_metadata(trailers)
    context.abort(_CODES[status.code], status.message)


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped
