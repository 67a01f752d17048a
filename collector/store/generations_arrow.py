"""Generations as Arrow record batches, one row per generation."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import BigInteger, Boolean, Double, Row, func, select

from collector.contract import Content, Score, to_document
from collector.contract.fields import NAMES, WIRE
from collector.contract.wire_field import Form, wire_fields
from collector.memo import of_short_texts
from collector.store import scores
from collector.store.engine import Store
from collector.store.evidence import generations
from collector.store.evidence.generations import ContentOf
from collector.store.generation_rows import LISTS
from collector.store.tables import generation as g

_ROWS = 4096
_Values = tuple[Any, ...]  # Any: each of its column's type


class Extras(NamedTuple):
    """Which fields of a generation to return, and whether to add its content and scores."""

    content_of: ContentOf | None = None
    scores: bool = False
    fields: tuple[str, ...] = tuple(NAMES)


def schema(extras: Extras) -> pa.Schema:
    """Return the columns: the fields of `Generation`, those of its speculation prefixed `spec_`.

    With content also the content's fields; with scores also a list column `scores`.
    """
    fields = [(name, arrow_type(name)) for name in extras.fields]
    if extras.content_of is not None:
        fields += [(name, kind) for name, kind in _content_types().items()]
    if extras.scores:
        fields.append(("scores", pa.list_(pa.struct(list(_score_types().items())))))
    return pa.schema(fields)


def batches(
    store: Store, wanted: generations.GenerationFilter, extras: Extras, *, newest: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the generations stored at the first read, in the order of arrival or newest first.

    Each batch is a separate read transaction, so that a slow reader does not block vacuuming. A
    generation deleted meanwhile may be included or not.
    """
    columns = schema(extras)
    with store.read() as connection:
        if not generations.exists(connection, wanted):
            return
        last = connection.scalar(select(func.max(g.c.id))) or 0
    conditions = generations.conditions(wanted)
    wanted_columns = (g.c.id, g.c.dialect, *(g.c[name] for name in extras.fields))
    statement = select(*wanted_columns).order_by(g.c.id.desc() if newest else g.c.id).limit(_ROWS)
    first, end = 0, last + 1  # the range left to read, both bounds excluded
    while True:
        with store.read() as connection:
            left = [g.c.id > first, g.c.id < end]
            rows = connection.execute(statement.where(*conditions, *left)).all()
            ids = [row.id for row in rows]
            dialects = {row.id: row.dialect for row in rows}
            texts = generations.contents(connection, dialects, extras.content_of)
            judged = scores.of_generations(connection, ids) if extras.scores else {}
        if not rows:
            return
        arrays = [*_fields(rows, extras.fields)]
        if extras.content_of is not None:
            arrays += _contents([texts.get(id_) for id_ in ids])
        if extras.scores:
            arrays.append(_scores([judged.get(id_, ()) for id_ in ids], columns.field("scores")))
        yield pa.record_batch(arrays, schema=columns)
        if len(rows) < _ROWS:
            return
        first, end = (first, ids[-1]) if newest else (ids[-1], end)


# Any: a sequence of rows.
def _fields(rows: list[Row[Any]] | Any, names: tuple[str, ...]) -> Iterator[pa.Array]:
    for name, values in zip(names, list(zip(*rows, strict=True))[2:], strict=True):
        yield pa.array(_READERS.get(name, tuple)(values), arrow_type(name))


def _contents(texts: list[Content | None]) -> Iterator[pa.Array]:
    for name, kind in _content_types().items():
        yield pa.array([None if text is None else getattr(text, name) for text in texts], kind)


def _scores(judged: list[tuple[Score, ...]], field: pa.Field) -> pa.Array:
    names = tuple(_score_types())
    return pa.array(
        [[{name: _plain(score, name) for name in names} for score in of] for of in judged],
        field.type,
    )


def _plain(score: Score, name: str) -> Any:  # Any: of the column's type
    value = getattr(score, name)
    return [to_document(span) for span in value] if name == "spans" and value else value


def arrow_type(name: str) -> pa.DataType:
    """Return the type of a generation's column."""
    if name in LISTS:
        of_counts = name in WIRE and WIRE[name].form is Form.INTEGERS
        return pa.list_(pa.int64() if of_counts else pa.string())
    if name == "dims":
        return pa.map_(pa.string(), pa.string())
    kind = g.c[name].type
    if isinstance(kind, BigInteger):
        return pa.int64()
    if isinstance(kind, Double):
        return pa.float64()
    return pa.bool_() if isinstance(kind, Boolean) else pa.string()


def _content_types() -> dict[str, pa.DataType]:
    return {
        name: pa.list_(pa.string()) if wire.form is Form.PASSAGES else pa.string()
        for name, wire in wire_fields(Content).items()
    }


def _score_types() -> dict[str, pa.DataType]:
    return {
        "metric": pa.string(),
        "evaluator": pa.string(),
        "version": pa.string(),
        "value": pa.float64(),
        "label": pa.string(),
        "explanation": pa.string(),
        "unscored_reason": pa.string(),
        "latency_s": pa.float64(),
        "cost_usd": pa.float64(),
        "spans": pa.list_(
            pa.struct({"start": pa.int64(), "end": pa.int64(), "support": pa.float64()})
        ),
        "key_id": pa.string(),
    }


def _hex(values: _Values) -> list[str]:
    return [value.hex() for value in values]


def _lists(values: _Values) -> list[Any]:
    return [None if text is None else load(text) for text in values]


def _flags(values: _Values) -> list[Any]:
    return [() if text is None else load(text) for text in values]


def _dims(values: _Values) -> list[Any]:
    return [[] if text is None else list(load(text).items()) for text in values]


@of_short_texts
def load(text: str) -> Any:  # Any: a JSON list or object
    """Return the JSON value; it is cached, so do not modify it."""
    return json.loads(text)


_READERS: dict[str, Callable[[_Values], Any]] = {
    **dict.fromkeys(LISTS, _lists),
    "trace_id": _hex,
    "span_id": _hex,
    "quality": _flags,
    "dims": _dims,
}
