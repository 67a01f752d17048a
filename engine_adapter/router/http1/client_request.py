"""A client's request as read from its connection."""

from collections.abc import Sequence
from typing import Final

from engine_adapter.router.transport import Header

_SMALL_BYTES: Final = 1 << 14
_JOINED_BYTES: Final = 1 << 16


class ClientRequest:
    """A request: its head, then its body piece by piece."""

    def __init__(
        self,
        *,
        method: str,
        target: str,
        is_http_1_1: bool,
        keeps_alive: bool,
        raw_headers: Sequence[Header],
    ) -> None:
        """`target`: path and query, as the client wrote them."""
        self.method = method
        self.target = target
        self.path, _, self.query = target.partition("?")
        self.is_http_1_1 = is_http_1_1
        self.keeps_alive = keeps_alive
        """Whether the client may send another request on this connection."""
        self.raw_headers = raw_headers
        self.headers: dict[str, str] = {}
        """The first value of each header, by its name in lower case."""
        for name, value in raw_headers:
            self.headers.setdefault(
                name.decode("ascii").lower(), value.decode("utf-8", "surrogateescape")
            )
        self.body_bytes = 0
        self._pieces: list[bytes] = []
        self._small = bytearray()

    def add(self, data: bytes) -> None:
        """Add a piece of the body; small pieces are joined, as each object costs 35 bytes more."""
        self.body_bytes += len(data)
        if self._pieces and len(data) < _SMALL_BYTES:
            self._small += data
            if len(self._small) >= _JOINED_BYTES:
                self._join_small()
        else:
            self._join_small()
            self._pieces.append(data)

    def drop_body(self) -> None:
        """Free the body."""
        self._pieces.clear()
        self._small.clear()

    def pieces(self) -> Sequence[bytes]:
        """Return the pieces of the body received so far."""
        self._join_small()
        return self._pieces

    def body(self) -> bytes:
        """Return the body received so far, joined into one piece."""
        self._join_small()
        self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def _join_small(self) -> None:
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small.clear()
