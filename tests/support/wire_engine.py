"""An engine that answers with bytes that no HTTP library would send, one request a thread."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = SSE_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

EVENTS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)
WHOLE = b"".join(EVENTS)
BODY = b'{"stream":true,"stream_options":{"include_usage":true}}'
ASKED = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
LAST = b"0\r\n\r\n"

Answer = Callable[["Peer", bytes], None]
"""Answers a request, given with its body; more requests are read once it returns."""


def chunk(data: bytes) -> bytes:
    """Return data as a chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKS = b"".join(map(chunk, EVENTS))


def read_all(connection: socket.socket) -> bytes:
    """Return all that comes until the other end closes."""
    parts = []
    while data := connection.recv(1 << 20):
        parts.append(data)
    return b"".join(parts)


class Peer:
    """The router's end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.sent_bytes = 0

    def send(self, data: bytes) -> None:
        """Send some bytes, and count those that the router's machine has taken."""
        view = memoryview(data)
        while view:
            sent = self.connection.send(view)
            self.sent_bytes += sent
            view = view[sent:]

    def reset(self) -> None:
        """Cut the connection with RST."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def close(self) -> None:
        """End the connection in order."""
        self.connection.shutdown(socket.SHUT_WR)


@dataclass
class Engine:
    """A running engine; `peers` are the connections that were used, `requests` what came there."""

    port: int
    scheme: str = "http"
    peers: list[Peer] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)
    gone: list[Peer] = field(default_factory=list)
    """Those of them that the router has ended."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1"


def sending(*pieces: bytes) -> Answer:
    """Return what sends the pieces one by one."""

    def answer(peer: Peer, request: bytes) -> None:
        del request
        for piece in pieces:
            peer.send(piece)

    return answer


@contextmanager
def running(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Engine]:
    """Run one on a free port."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        engine = Engine(listener.getsockname()[1], "http" if tls is None else "https")
        threads: list[threading.Thread] = []
        connected: list[Peer] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threads.append(threading.Thread(target=serve, args=(connection,)))
                threads[-1].start()

        def serve(connection: socket.socket) -> None:
            with suppress(OSError):
                served = connection if tls is None else tls.wrap_socket(connection, True)
                peer = Peer(served)
                connected.append(peer)
                with served:
                    try:
                        while request := _request(served):
                            if peer not in engine.peers:
                                engine.peers.append(peer)
                            engine.requests.append(request)
                            answer(peer, request)
                    finally:
                        if peer in engine.peers:
                            engine.gone.append(peer)

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield engine
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for peer in connected:
                with suppress(OSError):
                    peer.connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def _request(connection: socket.socket) -> bytes:
    """Return the next request; empty if there is none."""
    held = b""
    while b"\r\n\r\n" not in held:
        data = connection.recv(65536)
        if not data:
            return b""
        held += data
    head, _, body = held.partition(b"\r\n\r\n")
    found = head.lower().partition(b"content-length: ")[2]
    length = int(found.partition(b"\r\n")[0]) if found else 0
    parts, size = [body], len(body)
    while size < length:
        parts.append(connection.recv(1 << 20))
        if not parts[-1]:
            return b""
        size += len(parts[-1])
    return head + b"\r\n\r\n" + b"".join(parts)
