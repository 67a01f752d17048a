"""Cursors: a position in a listing, encoded as opaque text."""

import base64
import binascii
import json
from collections.abc import Sequence

from collector.errors import RequestError


def encode(position: Sequence[str | int] | None) -> str | None:
    """Return the position as text; None if there is no next page."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def decode(cursor: str, kinds: Sequence[type[str] | type[int]]) -> list[str | int]:
    """Return the position encoded by `encode`.

    Raises `RequestError` for any other text, and for a position whose parts are not of `kinds`.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as exc:
        raise _unusable(cursor) from exc
    if not isinstance(position, list) or [type(part) for part in position] != list(kinds):
        raise _unusable(cursor)
    if any(isinstance(part, int) and not 0 <= part < 2**63 for part in position):
        raise _unusable(cursor)
    return position


def _unusable(cursor: str) -> RequestError:
    return RequestError(
        f"after={cursor[:60]!r}: is no cursor; pass the `next` of the page before, or nothing"
    )
