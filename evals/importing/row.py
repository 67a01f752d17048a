"""Read typed values from a data set's row, with errors that name the key."""

from collections.abc import Mapping
from typing import Any

JsonObject = Mapping[str, Any]  # Any: JSON values
Line = dict[str, Any]  # Any: JSON values; one line of a workload
_MISSING = object()


class RowError(ValueError):
    """A row that does not fit its format; the message names the key."""


def text(row: JsonObject, *keys: str) -> str:
    """Return the text of the first key that is present."""
    for key in keys:
        if key in row:
            found = row[key]
            if not isinstance(found, str):
                raise RowError(f"{key}: wanted text, got {_shortened(found)}")
            return found
    raise RowError(f"{keys[0]}: required key is missing")


def texts(row: JsonObject, key: str) -> list[str]:
    """Return the list of texts at a key."""
    found = row.get(key, _MISSING)
    if found is _MISSING:
        raise RowError(f"{key}: required key is missing")
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise RowError(f"{key}: wanted a list of texts, got {_shortened(found)}")
    return found


def objects(row: JsonObject, key: str) -> list[JsonObject]:
    """Return the list of objects at a key."""
    found = row.get(key, _MISSING)
    if found is _MISSING:
        raise RowError(f"{key}: required key is missing")
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise RowError(f"{key}: wanted a list of objects, got {_shortened(found)}")
    return found


def identity(row: JsonObject, *keys: str) -> str:
    """Return the row's id, a text or an integer, from the first key that has one."""
    for key in keys:
        found = row.get(key)
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        if isinstance(found, str) and found:
            return found
    raise RowError(f"{keys[0]}: wanted an id, a text or a whole number")


def _shortened(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
