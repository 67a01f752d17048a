"""Cursors: a position in a listing, encoded as opaque text."""

import base64
import binascii
import json
import math
import re
from collections.abc import Sequence
from typing import Any, TypeVar, get_type_hints

from collector.errors import RequestError

P = TypeVar("P", bound=tuple[Any, ...])  # Any: str, int, float or bytes
_HEX = re.compile("([0-9a-f]{2})+")


def encode(position: Sequence[str | int | float | bytes] | None) -> str | None:
    """Return the position as text; None if there is no next page."""
    if position is None:
        return None
    parts = [part.hex() if isinstance(part, bytes) else part for part in position]
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def decode(cursor: str | None, kind: type[P]) -> P | None:
    """Return the position, a named tuple, that `encode` encoded; None for the first page.

    Raises `RequestError` for any other text, and for a position whose parts are of other types.
    """
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as exc:
        raise _unusable(cursor) from exc
    kinds = list(get_type_hints(kind).values())
    if not isinstance(position, list) or len(position) != len(kinds):
        raise _unusable(cursor)
    parts = tuple(map(_part, position, kinds))
    if None in parts:
        raise _unusable(cursor)
    return kind(*parts)


def _part(sent: Any, kind: type) -> Any:  # Any: a JSON value, and a part of a position
    """Return a position's part; None if it is of another type, or if no store can hold it."""
    if kind is bytes and isinstance(sent, str) and _HEX.fullmatch(sent):
        return bytes.fromhex(sent)
    is_of_kind: bool = type(sent) is kind
    if not is_of_kind:
        return None
    if isinstance(sent, str):
        return None if "\0" in sent else sent
    storable = math.isfinite(sent) if isinstance(sent, float) else 0 <= sent < 2**63
    return sent if storable else None


def _unusable(cursor: str) -> RequestError:
    return RequestError(
        f"after={cursor[:60]!r}: is not a cursor; pass the `next` of the page before, or nothing"
    )
