"""Translation of database errors into the store's errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from collector.errors import StoreUnavailableError

# Only these mean "unavailable now"; their siblings (integrity, programming, data) mean a bug. So
# does `_NEVER`, although the driver calls it operational: a retry would always fail.
_NOT_NOW = (OperationalError, DatabaseError, InterfaceError, InternalError)
_DRIVER_NOT_NOW = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
_NEVER = psycopg.errors.ProgramLimitExceeded
_REMEDIES = {
    "lock": "another process is writing to it: try again",
    "full": "free some space",
    "No space left": "free some space",
    "readonly": "make the file and its folder writable",
    "read-only": "let it be written to",
    "unable to open": "check that the file and its folder can be written",
    "malformed": "restore it from a backup",
    "not a database": "name another file, or restore it from a backup",
    "refused": "start the database server",
    "terminating connection": "wait until the database server is back",
    "starting up": "wait until the database server is up",
    "shutting down": "wait until the database server is back",
    "authentication failed": "check user and password",
    "does not exist": "create it first",
}


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise `StoreUnavailableError` for errors that mean "unavailable now"; others are bugs."""
    try:
        yield
    except PoolTimeoutError as exc:
        words = "every connection is in use; try again"
        raise StoreUnavailableError(
            f"{where}: {words}", for_sender=f"the database: {words}"
        ) from exc
    except SQLAlchemyError as exc:
        if type(exc) not in _NOT_NOW or isinstance(getattr(exc, "orig", None), _NEVER):
            raise
        raise _unavailable(where, getattr(exc, "orig", None) or exc) from exc
    except _DRIVER_NOT_NOW as exc:
        if isinstance(exc, _NEVER):
            raise
        raise _unavailable(where, exc) from exc


def _unavailable(where: str, cause: object) -> StoreUnavailableError:
    words = (str(cause).splitlines() or [type(cause).__name__])[0]
    remedy = next((_REMEDIES[part] for part in _REMEDIES if part in words), "check disk and server")
    # A server's message may contain its address and user names; SQLite's do not.
    said = words if isinstance(cause, sqlite3.Error) else "the server does not answer as it should"
    return StoreUnavailableError(
        f"{where}: {words}; {remedy}", for_sender=f"the database: {said}; {remedy}"
    )
