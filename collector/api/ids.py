"""Trace and span ids in posted records."""

import re

from collector.contract import Feedback, Score
from collector.errors import RequestError

_TRACE_ID = re.compile("[0-9a-f]{32}")
_SPAN_ID = re.compile("[0-9a-f]{16}")


def check_ids(record: Score | Feedback, at: str) -> None:
    """Raise `RequestError` unless the record's ids are valid; `at` is its path in the body."""
    for name, pattern in (("trace_id", _TRACE_ID), ("span_id", _SPAN_ID)):
        value = getattr(record, name)
        if not pattern.fullmatch(value):
            raise RequestError(
                f"{at}.{name}: wanted {pattern.pattern} (lower-case hexadecimal), got {value!r}"
            )
