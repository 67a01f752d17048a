"""A server whose every write is the test's: each connection is served by a thread."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
LAST = b"0\r\n\r\n"


def chunk(*texts: str) -> bytes:
    """Return events as one chunk of a body."""
    data = "".join(f"data: {text}\n\n" for text in texts).encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def counting(events: int) -> Callable[[socket.socket], None]:
    """Return what answers with so many numbers, one chunk each, 5 ms apart."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        for number in range(events):
            connection.sendall(chunk(str(number)))
            time.sleep(0.005)
        connection.sendall(LAST)

    return answer


@dataclass
class Serving:
    """What answers each request of a connection, in a thread a connection."""

    answer: Callable[[socket.socket], None]
    url: str
    tls: ssl.SSLContext | None = None
    connections: list[socket.socket] = field(default_factory=list)

    def accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # the test is over
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True)
        try:
            while received := connection.recv(65536):
                while not received.endswith(b"}"):
                    received += connection.recv(65536)
                self.answer(connection)
        except OSError:  # the client left, as some tests want
            pass
        finally:
            connection.close()


@contextmanager
def serving(
    answer: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None
) -> Iterator[Serving]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        scheme = "http" if tls is None else "https"
        server = Serving(answer, f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", tls)
        thread = threading.Thread(target=server.accept, args=(listener,), daemon=True)
        thread.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
