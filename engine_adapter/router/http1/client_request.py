"""One request of a client, as it was read from its connection."""

from collections.abc import Sequence

from engine_adapter.router.transport import Header


class ClientRequest:
    """A request: its head, and behind that its body, piece by piece."""

    def __init__(
        self,
        *,
        method: str,
        target: str,
        is_http_1_1: bool,
        keeps_alive: bool,
        raw_headers: Sequence[Header],
    ) -> None:
        """Take a head; `target` is path and query, as the client wrote them."""
        self.method = method
        self.target = target
        self.path, _, self.query = target.partition("?")
        self.is_http_1_1 = is_http_1_1
        self.keeps_alive = keeps_alive
        """Whether the client may send another behind it."""
        self.raw_headers = raw_headers
        self.headers: dict[str, str] = {}
        """The first value of each header, by its name in lower case."""
        for name, value in raw_headers:
            self.headers.setdefault(
                name.decode("ascii").lower(), value.decode("utf-8", "surrogateescape")
            )
        self.pieces: list[bytes] = []
        """Of the body."""

    def body(self) -> bytes:
        """Return what has come of the body, as one."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
