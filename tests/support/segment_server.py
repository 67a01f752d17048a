"""Streams of events of which every segment is the test's, from a `wire_engine`."""

import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import wire_engine
from wire_engine import CHUNKED, LAST, Engine, Peer


def chunk(*texts: str) -> bytes:
    """Return events as one chunk of a body."""
    return wire_engine.chunk("".join(f"data: {text}\n\n" for text in texts).encode())


def counting(events: int) -> Callable[[socket.socket], None]:
    """Return what answers with so many numbers, one chunk each, 5 ms apart."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        for number in range(events):
            connection.sendall(chunk(str(number)))
            time.sleep(0.005)
        connection.sendall(LAST)

    return answer


def serving(
    answer: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None
) -> AbstractContextManager[Engine]:
    """Run what answers each request of a connection, in a thread a connection."""

    def by_peer(peer: Peer, request: bytes) -> None:
        del request
        answer(peer.connection)

    return wire_engine.running(by_peer, tls)
