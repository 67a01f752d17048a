"""Which of several collectors does the upkeep: a lease that runs out unless it is renewed."""

from typing import Final

from sqlalchemy import Connection, delete, insert, select

from collector.store import clock
from collector.store.tables import upkeep_lease as u

_UPKEEP: Final = "upkeep"
_NS: Final = 1_000_000_000


def is_anothers(connection: Connection, holder: str) -> bool:
    """Return whether somebody else holds it now."""
    row = connection.execute(select(u).where(u.c.name == _UPKEEP)).one_or_none()
    if row is None or row.holder == holder:
        return False
    # One that was taken in the future is of a clock that was set back since, and not waited for.
    taken, expires = int(row.taken_unix_ns), int(row.expires_unix_ns)
    return taken <= clock.now_unix_ns(connection) < expires


def take(connection: Connection, holder: str, for_s: float) -> bool:
    """Take or renew it; False if somebody else holds it.

    The transaction must exclude other writers.
    """
    if is_anothers(connection, holder):
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


def leave(connection: Connection, holder: str) -> None:
    """Give it up, where the holder has it."""
    connection.execute(delete(u).where(u.c.name == _UPKEEP, u.c.holder == holder))
