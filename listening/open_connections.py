"""The open connections of a listener: how many there may be, and which is closed for another.

If there are too many, of all or of one address, the one is closed whose peer was waited for
longest: it is silent, idle, or within a request. What is being answered is never cut for a
newcomer.
"""

import ipaddress
import sys
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

_FILES_KEPT_FREE: Final = 256
_SUBNET_BITS: Final = 64
"""One peer has so much of IPv6 to itself."""


class OpenConnection(Protocol):
    """A peer's connection, as far as the others are concerned."""

    @property
    def address(self) -> str:
        """The peer's; it does not change while the connection is among the others."""

    @property
    def waits_for_peer(self) -> bool:
        """Whether nothing happens before the peer sends more."""

    def abort(self) -> None:
        """Close at once."""


_Connection = TypeVar("_Connection", bound=OpenConnection)


class OpenConnections(Generic[_Connection]):
    """Those of one listener, by their peers' addresses."""

    def __init__(self, most: int, most_per_address: int, *, files_each: int = 1) -> None:
        """Fewer than `most`, if the system does not allow `files_each` for each."""
        allowed = (_files_allowed() - _FILES_KEPT_FREE) // files_each
        self._most = min(most, max(1, allowed))
        self._most_per_address = most_per_address
        self._by_address: dict[str, dict[_Connection, None]] = {}
        """Each address's, the one that was waited for longest first."""
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
        own = self._by_address.setdefault(_network(connection.address), {})
        own[connection] = None
        self._number += 1
        if len(own) > self._most_per_address:
            self._close_one(own)
        elif self._number > self._most:
            self._close_one(max(self._by_address.values(), key=len))

    def is_waited_for_anew(self, connection: _Connection) -> None:
        """Note that the peer did what was waited for: from now on, it is waited for again."""
        own = self._by_address.get(_network(connection.address), {})
        if connection in own:
            del own[connection]
            own[connection] = None

    def discard(self, connection: _Connection) -> None:
        """Forget a connection that is closed."""
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
