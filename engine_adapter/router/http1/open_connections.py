"""The open connections of a listener: how many there may be, and which is closed for another.

If there are too many, the one is closed whose client was waited for longest: it is silent, idle, or
within a request. An answer that is on its way is never cut for a new connection.
"""

import ipaddress
import sys
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

_FILES_KEPT_FREE: Final = 128
_SUBNET_BITS: Final = 64
"""One client has so much of IPv6 to itself."""


class OpenConnection(Protocol):
    """A client's connection, as far as the others are concerned."""

    address: str
    """The client's; empty before it is connected."""
    since_s: float
    """When it last fell idle, or a request last began to come, by the loop's clock."""

    @property
    def waits_for_client(self) -> bool:
        """Whether nothing happens before the client sends more."""

    def abort(self) -> None:
        """Close at once."""


_Connection = TypeVar("_Connection", bound=OpenConnection)


class OpenConnections(Generic[_Connection]):
    """Those of one listener, by their clients' addresses."""

    def __init__(self, most: int, most_per_address: int) -> None:
        """Fewer than `most`, where the system allows no two files for each."""
        self._most = min(most, max(1, (_files_allowed() - _FILES_KEPT_FREE) // 2))
        self._most_per_address = most_per_address
        self._by_address: dict[str, dict[_Connection, None]] = {}
        self._number = 0

    def __iter__(self) -> Iterator[_Connection]:
        """Yield all; none may be added or discarded meanwhile."""
        for own in self._by_address.values():
            yield from own

    def __len__(self) -> int:
        """Return how many there are."""
        return self._number

    def add(self, connection: _Connection) -> None:
        """Take a connection, and close one if there are too many."""
        own = self._by_address.setdefault(_client(connection.address), {})
        own[connection] = None
        self._number += 1
        if len(own) > self._most_per_address:
            _close_one(own)
        elif self._number > self._most:
            _close_one(max(self._by_address.values(), key=len))

    def discard(self, connection: _Connection) -> None:
        """Forget a connection that is closed."""
        client = _client(connection.address)
        own = self._by_address.get(client, {})
        if connection in own:
            del own[connection]
            self._number -= 1
            if not own:
                del self._by_address[client]


def _close_one(among: dict[_Connection, None]) -> None:
    waiting = [connection for connection in among if connection.waits_for_client]
    oldest = min(waiting, key=lambda one: one.since_s, default=next(reversed(among)))
    oldest.abort()


def _client(address: str) -> str:
    if ":" not in address:
        return address
    host = address.partition("%")[0]
    return str(ipaddress.ip_network((host, _SUBNET_BITS), strict=False))


def _files_allowed() -> int:
    """Return how many files this process may have open, once it has asked for all it can have."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource  # noqa: PLC0415  # no Windows has it

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS refuses more than its own bound
            hard = soft
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard
