"""Read single fields of foreign JSON: the value if it has the wanted type, else `None`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

JsonObject = Mapping[str, Any]  # Any: foreign JSON, looked at one field at a time
_OBJECT = (dict, Mapping)
"""`dict` first: testing against the abstract class takes ten times as long."""


_LARGEST = (1 << 63) - 1


def within(document: object, *path: str | int) -> Any:  # Any: foreign JSON
    """Return the value at a path of keys and indices; `None` if there is none."""
    for part in path:
        if isinstance(part, str):
            document = document.get(part) if isinstance(document, _OBJECT) else None
        else:
            listed = isinstance(document, list) and -len(document) <= part < len(document)
            document = document[part] if isinstance(document, list) and listed else None
    return document


def text(document: object, *path: str | int) -> str | None:
    """Return a string."""
    value = within(document, *path)
    return value if isinstance(value, str) else None


def count(document: object, *path: str | int) -> int | None:
    """Return an integer from 0 to 2⁶³ − 1, the range of a span attribute; 3.0 counts as 3."""
    value = within(document, *path)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        return None
    return value


def number(document: object, *path: str | int) -> float | None:
    """Return a finite number; a boolean does not count as one."""
    value = within(document, *path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        value = float(value)
    except OverflowError:  # JSON has integers that no float can hold
        return None
    return value if math.isfinite(value) else None


def seconds(document: object, *path: str | int) -> float | None:
    """Return a non-negative duration given in milliseconds, in seconds."""
    milliseconds = number(document, *path)
    return milliseconds / 1e3 if milliseconds is not None and milliseconds >= 0 else None


def counts(document: object, *path: str | int) -> tuple[int, ...] | None:
    """Return a list of integers as `count` reads them; `None` if any element is not one."""
    values = within(document, *path)
    if not isinstance(values, list):
        return None
    whole = [count(values, index) for index in range(len(values))]
    return None if None in whole else tuple(value for value in whole if value is not None)


def objects(document: object, *path: str | int) -> Sequence[JsonObject]:
    """Return a list's objects; empty if there is none."""
    values = within(document, *path)
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, _OBJECT)]
