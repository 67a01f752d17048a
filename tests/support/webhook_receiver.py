"""A webhook's receiver that can be down, slow, broken or lying, on a port of this machine."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    """One request, whatever it was answered."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:  # Any: JSON
        """The body."""
        return json.loads(self.body)


class Receiver:
    """Answers as `behaviour` says now: it is given the handler, and its number from 0 on."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.behaviour: Callable[[BaseHTTPRequestHandler, int], None] = accept
        self.url = ""

    def ids(self) -> list[str]:
        """Return the ids of the received notifications, in order."""
        return [one.headers["Draftgate-Notification"] for one in self.received]


def accept(handler: BaseHTTPRequestHandler, _number: int) -> None:
    """Answer 204."""
    answer(204)(handler, _number)


def answer(status: int) -> Callable[[BaseHTTPRequestHandler, int], None]:
    """Answer so."""

    def behave(handler: BaseHTTPRequestHandler, _number: int) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return behave


def close_half_way(handler: BaseHTTPRequestHandler, _number: int) -> None:
    """Begin the line of the status, and end the connection."""
    handler.wfile.write(b"HTTP/1.1 2")
    handler.close_connection = True


def never(gone: threading.Event) -> Callable[[BaseHTTPRequestHandler, int], None]:
    """Answer nothing before the event."""

    def behave(handler: BaseHTTPRequestHandler, _number: int) -> None:
        gone.wait()
        handler.close_connection = True

    return behave


def endless(handler: BaseHTTPRequestHandler, _number: int) -> None:
    """Answer 200 with a body that ends when the sender closes the connection."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
    handler.close_connection = True


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port


@contextlib.contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            number = len(receiver.received)
            receiver.received.append(Received(self.path, dict(self.headers), body))
            receiver.behaviour(self, number)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", port), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
