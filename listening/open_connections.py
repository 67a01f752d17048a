"""Limits on a listener's open connections, in total and per address.

If there are too many, the connection that has waited longest for its peer is closed: its peer is
silent, idle, or in the middle of a request. A request that is being answered is never interrupted
for a new connection.
"""

import ipaddress
import sys
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

_FILES_KEPT_FREE: Final = 256
_SUBNET_BITS: Final = 64
"""An IPv6 peer usually has a whole /64, so addresses are counted per /64."""


class OpenConnection(Protocol):
    """The interface of a connection for `OpenConnections`."""

    @property
    def address(self) -> str:
        """The peer's address; must not change while the connection is registered."""

    @property
    def waits_for_peer(self) -> bool:
        """Whether the connection waits for the peer to send more."""

    def abort(self) -> None:
        """Close the connection at once."""


_Connection = TypeVar("_Connection", bound=OpenConnection)


class OpenConnections(Generic[_Connection]):
    """The open connections of one listener, by peer address."""

    def __init__(self, most: int, most_per_address: int, *, files_each: int = 1) -> None:
        """Reduce `most` if the process may not open `files_each` files for each connection."""
        allowed = (_files_allowed() - _FILES_KEPT_FREE) // files_each
        self._most = min(most, max(1, allowed))
        self._most_per_address = most_per_address
        self._by_address: dict[str, dict[_Connection, None]] = {}
        """Connections by network, the one that has waited longest for its peer first."""
        self._number = 0

    def __iter__(self) -> Iterator[_Connection]:
        """Yield all connections; do not add or discard any while iterating."""
        for own in self._by_address.values():
            yield from own

    def __len__(self) -> int:
        """Return the number of connections."""
        return self._number

    def add(self, connection: _Connection) -> None:
        """Register a connection, and close one if there are too many."""
        own = self._by_address.setdefault(_network(connection.address), {})
        own[connection] = None
        self._number += 1
        if len(own) > self._most_per_address:
            self._close_one(own)
        elif self._number > self._most:
            self._close_one(max(self._by_address.values(), key=len))

    def restart_wait(self, connection: _Connection) -> None:
        """Restart the connection's wait: its peer has made progress."""
        own = self._by_address.get(_network(connection.address), {})
        if connection in own:
            del own[connection]
            own[connection] = None

    def discard(self, connection: _Connection) -> None:
        """Remove a closed connection."""
        network = _network(connection.address)
        own = self._by_address.get(network, {})
        if connection in own:
            del own[connection]
            self._number -= 1
            if not own:
                del self._by_address[network]

    def _close_one(self, among: dict[_Connection, None]) -> None:
        found = next((one for one in among if one.waits_for_peer), next(reversed(among)))
        self.discard(found)
        found.abort()


def _network(address: str) -> str:
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], _SUBNET_BITS), strict=False))
    except ValueError:
        return address


def _files_allowed() -> int:
    """Raise the limit of open files to the hard limit, and return it."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource  # noqa: PLC0415  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS refuses more than its own limit
            hard = soft
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard
