"""One request of a client, as it was read from its connection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine_adapter.router.headers import Header


@dataclass(kw_only=True)
class ClientRequest:
    """A request: its head, and behind that its body, piece by piece."""

    method: str
    target: str
    """Path and query, as the client wrote them."""
    is_http_1_1: bool
    keeps_alive: bool
    """Whether the client may send another behind it."""
    raw_headers: Sequence[Header]
    pieces: list[bytes] = field(default_factory=list)
    """Of the body."""

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The first value of each header, by its name in lower case."""
        found: dict[str, str] = {}
        for name, value in self.raw_headers:
            found.setdefault(name.decode("ascii").lower(), value.decode("utf-8", "surrogateescape"))
        return found

    @property
    def path(self) -> str:
        """The target up to its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What stands behind the path, its question mark left out."""
        return self.target.partition("?")[2]

    @cached_property
    def body(self) -> bytes:
        """What has come of the body, as one."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
