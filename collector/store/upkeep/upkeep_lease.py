"""The upkeep lease: its holder, one of several collectors, does the upkeep until it expires."""

from typing import Final

from sqlalchemy import Connection, delete, insert, select

from collector.store import clock
from collector.store.tables import upkeep_lease as u

_UPKEEP: Final = "upkeep"
_NS: Final = 1_000_000_000


def is_held_by_other(connection: Connection, holder: str) -> bool:
    """Return whether another holder has the lease now."""
    row = connection.execute(select(u).where(u.c.name == _UPKEEP)).one_or_none()
    if row is None or row.holder == holder:
        return False
    # A lease taken in the future means that the clock was set back since: do not wait for it.
    taken, expires = int(row.taken_unix_ns), int(row.expires_unix_ns)
    return taken <= clock.now_unix_ns(connection) < expires


def take(connection: Connection, holder: str, for_s: float) -> bool:
    """Take or renew the lease for `for_s` seconds; return False if another holder has it.

    The transaction must exclude other writers.
    """
    if is_held_by_other(connection, holder):
        return False
    now = clock.now_unix_ns(connection)
    connection.execute(delete(u).where(u.c.name == _UPKEEP))
    connection.execute(
        insert(u).values(
            name=_UPKEEP,
            holder=holder,
            taken_unix_ns=now,
            expires_unix_ns=now + int(for_s * _NS),
        )
    )
    return True


def release(connection: Connection, holder: str) -> None:
    """Release the lease if the holder has it."""
    connection.execute(delete(u).where(u.c.name == _UPKEEP, u.c.holder == holder))
