"""Records whose fields are columns of the same names."""

from collections.abc import Hashable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

from sqlalchemy import Row

R = TypeVar("R")


def record_of(kind: type[R], row: Row[Any], /, **changed: Any) -> R:  # Any: the columns' types
    """Return the record of a row, which may have further columns; `changed` replace its values."""
    # `_mapping` is public API: the underscore only avoids a clash with column names.
    values = row._mapping  # noqa: SLF001
    named = {name: values[name] for name in _names(cast("Hashable", kind)) if name not in changed}
    return kind(**named, **changed)


@cache
def _names(kind: Any) -> tuple[str, ...]:  # Any: a dataclass
    return tuple(field.name for field in fields(kind))
