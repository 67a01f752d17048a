"""Rows in one value, as SQLite reads them: the table-valued function `packed_rows`.

It is compiled, and offered to the SQLite that Python's driver uses. If either is missing
(no compiler, a driver that has SQLite inside of itself), rows are bound one by one, and writing
takes twice as long.
"""

import _sqlite3
from collections.abc import Iterator
from functools import cache

try:
    from collector.store._sqlite_rows import offer
except ImportError:  # there was no compiler when this was installed
    offer = None  # type: ignore[assignment]  # it is asked for below


@cache
def are_readable() -> bool:
    """Return whether connections that are opened from now on know `packed_rows`."""
    driver: str | None = getattr(_sqlite3, "__file__", None)
    return offer is not None and offer(driver)


def names(columns: int) -> Iterator[str]:
    """Yield the columns' names."""
    return (f"c{number}" for number in range(columns))
