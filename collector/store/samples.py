"""Engine samples: conversion to rows, and reads."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, select, tuple_

from collector.contract import EngineSample, SampleKind
from collector.store.pages import Page, page_of
from collector.store.row_records import record_of
from collector.store.tables import engine_sample as e

COLUMNS: Final = tuple(e.c.keys())
"""The columns of `to_row`, in order."""

_DIGEST_BYTES = 16


class SampleFilter(NamedTuple):
    """Which samples of a metric to read, in the time window [since, until)."""

    metric: str
    service_name: str | None = None
    since_unix_ns: int = 0
    until_unix_ns: int | None = None


class SamplePosition(NamedTuple):
    """A cursor: the last sample of a page."""

    time_unix_ns: int
    series: bytes


def to_row(sample: EngineSample) -> tuple[Any, ...]:  # Any: one value for each of COLUMNS
    """Return the sample as a row of `COLUMNS`."""
    attributes = _dump(sample.attributes)
    return (
        sample.metric,
        sample.time_unix_ns,
        _series(sample, attributes),
        sample.service_name,
        sample.instance,
        sample.kind.value,
        sample.value,
        sample.unit,
        attributes,
    )


def page(
    connection: Connection, wanted: SampleFilter, *, limit: int, after: SamplePosition | None
) -> Page[EngineSample, SamplePosition]:
    """Return a metric's samples after a cursor, ordered by time, then by series."""
    statement = select(e).where(e.c.metric == wanted.metric)
    if wanted.service_name is not None:
        statement = statement.where(e.c.service_name == wanted.service_name)
    if wanted.until_unix_ns is not None:
        statement = statement.where(e.c.time_unix_ns < wanted.until_unix_ns)
    since = wanted.since_unix_ns
    if after is not None:
        # The condition on time uses the index; the one on both columns is exact.
        since = max(since, after.time_unix_ns)
        statement = statement.where(tuple_(e.c.time_unix_ns, e.c.series) > tuple_(*after))
    statement = statement.where(e.c.time_unix_ns >= since)
    rows = connection.execute(
        statement.order_by(e.c.time_unix_ns, e.c.series).limit(limit + 1)
    ).all()
    return page_of(rows, limit, _sample, lambda row: SamplePosition(row.time_unix_ns, row.series))


def _series(sample: EngineSample, attributes: str) -> bytes:
    identity = json.dumps([sample.service_name, sample.instance, attributes])
    return hashlib.blake2b(identity.encode(), digest_size=_DIGEST_BYTES).digest()


def _dump(attributes: Mapping[str, str]) -> str:
    # Sorted for the digest; ASCII-escaped because PostgreSQL text cannot contain NUL.
    return json.dumps(dict(attributes), sort_keys=True)


def _sample(row: Row[Any]) -> EngineSample:
    kind, attributes = SampleKind(row.kind), json.loads(row.attributes)
    return record_of(EngineSample, row, kind=kind, attributes=attributes)
