"""Times in queries: RFC 3339 or Unix seconds."""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query

from collector.errors import RequestError

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_OFFSET = re.compile(r"([Zz]|[+-][0-9]{2}:[0-9]{2})$")
_UNESCAPED = re.compile(r" (?=[0-9]{2}:[0-9]{2}$)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_UNIX_S = 2**63 / 1e9

Start = Annotated[
    str | None,
    Query(
        description="Start, inclusive: RFC 3339, such as 2026-03-01T12:00:00Z, or Unix seconds. "
        "Rounded down to a whole minute, or step."
    ),
]
End = Annotated[
    str | None,
    Query(description="End, exclusive: as start, but rounded up. Absent: no end."),
]


def unix_s(name: str, given: str | None) -> float | None:
    """Return a parameter's time in Unix seconds; raises `RequestError` if it is malformed."""
    if given is None:
        return None
    # An unescaped + of a UTC offset arrives as a space.
    text = _UNESCAPED.sub("+", given)
    seconds = float(text) if _NUMBER.fullmatch(text) else _rfc3339(name, text)
    if not math.isfinite(seconds) or not 0 <= seconds <= _LATEST_UNIX_S:
        raise RequestError(f"{name}={given[:60]!r}: wanted a time from 1970 to 2262")
    return seconds


def _rfc3339(name: str, text: str) -> float:
    try:
        if not _OFFSET.search(text):
            raise ValueError  # noqa: TRY301  # a time without a zone is ambiguous
        moment = datetime.fromisoformat(text.upper())
    except ValueError as exc:
        raise RequestError(
            f"{name}={text[:60]!r}: is not a time; wanted RFC 3339 with its offset, such as "
            "2026-03-01T12:00:00Z, or Unix seconds"
        ) from exc
    return (moment - _EPOCH) / timedelta(seconds=1)
