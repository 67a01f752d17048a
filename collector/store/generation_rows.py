"""Conversion between generations and table rows."""

import json
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, cast

from sqlalchemy import RowMapping

from collector import memo
from collector.contract import Arm, Content, Fields, Generation, unflatten, usable_counts
from collector.contract.fields import NAMES, WIRE
from collector.contract.wire_field import Form

try:
    from collector.store._rows import dump_counts
except ImportError:  # there was no compiler when this was installed

    def dump_counts(values: tuple[int, ...], /) -> str | None:  # noqa: ARG001  # as the compiled one
        """Return None: the caller falls back to Python."""
        return None


LISTS: Final = (
    *(name for name, wire in WIRE.items() if wire.form in (Form.STRINGS, Form.INTEGERS)),
    "quality",
)
"""Fields stored as JSON lists."""


# One encoder for all rows: json.dumps with options would create one per call.
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_values_of = itemgetter(*NAMES)

Row = dict[str, Any]
"""Values by column name, without columns that are NULL; Any: each of its column's type."""


def to_row(fields: Fields, dialect: str) -> Row:
    """Return a generation's fields as a row of the generation table, without its ids."""
    row = fields.copy()
    row["dialect"] = dialect
    row["counts_usable"] = usable_counts(fields)
    for name in LISTS:
        if name in row:
            row[name] = _dump_list(row[name])
    if "dims" in row:
        row["dims"] = _dump(row["dims"])
    if "arm" in row:
        row["arm"] = row["arm"].value
    return row


def from_row(row: RowMapping, content: Content | None = None) -> Generation:
    """Return the generation stored in a row of the generation table."""
    values = zip(NAMES, _values_of(row), strict=True)
    fields = {name: value for name, value in values if value is not None}
    fields["trace_id"] = row["trace_id"].hex()
    fields["span_id"] = row["span_id"].hex()
    if "arm" in fields:
        fields["arm"] = Arm(fields["arm"])
    for name in LISTS:
        if name in fields:
            fields[name] = load_list(fields[name])
    if "dims" in fields:
        fields["dims"] = json.loads(fields["dims"])
    return unflatten(fields, content)


def _dump_list(values: tuple[int, ...] | tuple[str, ...]) -> str:
    if values and type(values[0]) is int:
        # str() is five times as fast as the encoder, and dump_counts five times as fast as str().
        return dump_counts(values) or str(list(values)).replace(" ", "")
    texts = cast("tuple[str, ...]", values)
    return _dump_strings(texts) if sum(map(len, texts)) <= memo.LONGEST else _dump(texts)


@lru_cache(maxsize=1024)
def _dump_strings(values: tuple[str, ...]) -> str:
    return _dump(values)


def load_list(text: str | None) -> Any:  # Any: the list type of the field
    """Return the list in a JSON column; None for NULL, which means unknown, not empty."""
    return None if text is None else tuple(json.loads(text))
