"""HTTP/2 frames as raw bytes, including sequences that no client library would send."""

import socket

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
ACK, END_STREAM, END_HEADERS = 1, 1, 4
_MOST_IN_FRAME = 16_384
_WINDOW = 65_535
PATHS = tuple(
    b"/opentelemetry.proto.collector.%s.v1.%sService/Export" % (signal, signal.capitalize())
    for signal in (b"trace", b"logs", b"metrics")
)
"""The methods of the three signals, traces first."""


def frame(kind: int, flags: int, stream: int, inside: bytes) -> bytes:
    """Return a frame."""
    length = len(inside).to_bytes(3, "big")
    return length + bytes([kind, flags]) + stream.to_bytes(4, "big") + inside


def literal(name: bytes, value: bytes) -> bytes:
    """Return a header in HPACK's literal form, without its tables."""
    return b"\x10" + _integer(len(name)) + name + _integer(len(value)) + value


def head(*more: tuple[bytes, bytes], path: bytes = PATHS[0]) -> bytes:
    """Return the headers of an export."""
    named = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"x"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
        *more,
    )
    return b"".join(literal(*header) for header in named)


def begin() -> bytes:
    """Return the client's connection preface and its settings frame."""
    return PREFACE + frame(SETTINGS, 0, 0, b"")


def message_head(size: int) -> bytes:
    """Return gRPC's prefix of an uncompressed message of that size."""
    return b"\0" + size.to_bytes(4, "big")


class Export:
    """One export on a connection, sent as fast as the flow-control windows allow."""

    def __init__(self, connection: socket.socket, size: int) -> None:
        """Send the headers, and the prefix of a message of that size."""
        self._connection = connection
        self._windows = {0: _WINDOW, 1: _WINDOW}
        self._read = b""
        connection.sendall(begin() + frame(HEADERS, END_HEADERS, 1, head()))
        self._send(message_head(size))

    def send(self, size: int) -> None:
        """Send `size` bytes of the message; raises `OSError` if the peer closes the connection."""
        while size > 0:
            piece = min(size, _MOST_IN_FRAME, *self._windows.values())
            if piece > 0:
                self._send(bytes(piece))
                size -= piece
            else:
                self._receive()

    def _send(self, data: bytes) -> None:
        self._connection.sendall(frame(DATA, 0, 1, data))
        for stream in self._windows:
            self._windows[stream] -= len(data)

    def _receive(self) -> None:
        """Read frames, and apply window updates and settings."""
        more = self._connection.recv(65_536)
        if not more:
            raise ConnectionResetError
        self._read += more
        while len(self._read) >= 9 + (size := int.from_bytes(self._read[:3], "big")):
            kind, flags, stream = self._read[3], self._read[4], self._read[5:9]
            inside, self._read = self._read[9 : 9 + size], self._read[9 + size :]
            if kind == WINDOW_UPDATE:
                self._windows[int.from_bytes(stream, "big")] += int.from_bytes(inside, "big")
            elif kind == SETTINGS and not flags & ACK:
                self._set(inside)
            elif kind == RST_STREAM:
                raise ConnectionResetError

    def _set(self, settings: bytes) -> None:
        for at in range(0, len(settings), 6):
            if int.from_bytes(settings[at : at + 2], "big") == 4:  # SETTINGS_INITIAL_WINDOW_SIZE
                window = int.from_bytes(settings[at + 2 : at + 6], "big")
                self._windows[1] += window - _WINDOW
        self._connection.sendall(frame(SETTINGS, ACK, 0, b""))


def _integer(number: int) -> bytes:
    if number < 127:
        return bytes([number])
    out, number = b"\x7f", number - 127
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])
