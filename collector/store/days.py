"""Days of arrival: every id contains the day on which its row arrived."""

from typing import Final

from collector.store import tables

_DAY_S: Final = 86_400
DAY_BITS: Final = 32
"""Low bits of an id, which number the rows of one day; the high bits are the day."""

BY_DAY: Final = (tables.span, tables.content, tables.generation)
"""The tables from which a whole day can be dropped."""


def first_id_of(unix_s: float) -> int:
    """Return the first id of the day, in UTC."""
    return first_id_of_day(int(unix_s // _DAY_S))


def first_id_of_day(day: int) -> int:
    """Return the first id of the day, counted from 1970-01-01."""
    return day << DAY_BITS


def day_of(id_: int) -> int:
    """Return the day of an id, counted from 1970-01-01."""
    return id_ >> DAY_BITS
