"""Translation of errors from ClickHouse, or a proxy before it, into the store's errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from collector.errors import StoreUnavailableError

_MOST_CHARACTERS: Final = 300
_REMEDIES: Final[dict[str, frozenset[int]]] = {
    "check user and password": frozenset({192, 193, 194, 516, 720}),
    "give the user all rights on the database, and let its profile write": frozenset(
        {164, 291, 495, 497}
    ),
    "the database or a table of it is gone: restore it, or restart the collector to begin anew": (
        frozenset({60, 81, 218})
    ),
    "free some space": frozenset({75, 204, 243, 294, 1016}),
    "wait until its parts are merged": frozenset({252, 565, 574, 692}),
    "wait, or give the server more": frozenset(
        {*(159, 160, 173, 201, 202, 203, 241, 290, 364, 439, 700, 745, 749, 762, 776, 1019, 1020)}
    ),
    "wait until its replicas and Keeper are back": frozenset(
        {*(225, 242, 244, 254, 265, 279, 285, 286, 297, 319, 341, 369, 415, 529, 571, 774, 904)}
    )
    | {999},
    "wait until the server is back": frozenset({3, 209, 210, 236, 394, 425, 473, 499, 677, 735}),
}
"""Remedies and the ClickHouse error codes they apply to; other codes mean a bug."""
_DOWN: Final = (
    "check that the ClickHouse server is up and has room, "
    "and with chdb that no other process has the folder open"
)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise `StoreUnavailableError` for errors that mean "unavailable now"; others are bugs."""
    from clickhouse_connect.driver.exceptions import (  # noqa: PLC0415  # an extra
        ClickHouseError,
        DatabaseError,
        OperationalError,
    )

    try:
        yield
    except ClickHouseError as exc:
        code = getattr(exc, "code", None)
        remedy = next((what for what, codes in _REMEDIES.items() if code in codes), None)
        # An error without a code comes from a proxy or the connection, not from ClickHouse.
        if remedy is None and (code is None or isinstance(exc, OperationalError)):
            remedy = _DOWN
        if remedy is None or not isinstance(exc, DatabaseError):
            raise
        raise StoreUnavailableError(f"{where}: {_words(exc)}; {remedy}") from exc


def _words(exc: Exception) -> str:
    """Return the error's message without the request's URL, which contains every setting."""
    cause = exc.__cause__
    # `reason` is set by urllib3 if it retried.
    said = str(exc if cause is None else getattr(cause, "reason", None) or cause)
    _, found, of_server = said.partition("server response: Code")
    lines = (f"Code{of_server}" if found else said).splitlines() or [type(exc).__name__]
    return lines[0][:_MOST_CHARACTERS]
