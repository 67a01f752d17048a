"""Pages of records."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

R = TypeVar("R")
P = TypeVar("P")


class Page(NamedTuple, Generic[R, P]):
    """A page of records in the order of their listing."""

    records: tuple[R, ...]
    next: P | None
    """The cursor of the next page: the position of the last record; None on the last page."""


def page_of(  # Any: a row of the listing's columns
    rows: Sequence[Any], limit: int, record: Callable[[Any], R], position: Callable[[Any], P]
) -> Page[R, P]:
    """Return the page of the first `limit` rows; a further row means that another page follows."""
    shown = rows[:limit]
    return Page(tuple(map(record, shown)), position(shown[-1]) if len(rows) > limit else None)
