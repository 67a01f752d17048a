"""The tables on ClickHouse, as statements.

They have the columns of `store.tables`. A day of arrival is a partition, by the id, as on
PostgreSQL; generations lie by (rollout, cohort, arm, time), and once more by the key of pairing.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Boolean, Column, Double, LargeBinary, Table

from collector.contract.fields import WIRE
from collector.store import tables
from collector.store.days import DAY_BITS

VERSION: Final = 3
"""Of the tables as they are here; one more with each change, which `upgrades` then carries out."""
VERSIONS: Final = "schema_version"
"""The table of the versions that a database has had."""
_DAY: Final = f"intDiv(id, {2**DAY_BITS})"
_FIXED: Final = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}
_FEW_VALUES: Final = {
    *(name for name, wire in WIRE.items() if wire.few_values),
    "name",
    "kind",
    "status",
    "scope_name",
    "dialect",
    "quality",
    "carries",
    "metric",
    "evaluator",
    "version",
    "unscored_reason",
    "key_id",
}
"""Text of which a part holds few different values."""
_CODECS: Final = {
    "id": "CODEC(Delta, ZSTD(1))",
    "start_unix_ns": "CODEC(Delta, ZSTD(1))",
    "end_unix_ns": "CODEC(Delta, ZSTD(1))",
    # What the collector has compressed already.
    "payload": "CODEC(NONE)",
    "attributes": "CODEC(NONE)",
}
# Acknowledged means on the disk.
_SETTINGS: Final = "allow_nullable_key = 1, fsync_after_insert = 1"
# A batch, or a page, asks for many traces, each somewhere else.
_BY_TRACE: Final = f"{_SETTINGS}, index_granularity = 1024"

# A summary reads a few hundred rows of a kilobyte, some here and some there: of small granules, and
# with all columns in one file.
_ROLLED_UP: Final = f"{_SETTINGS}, index_granularity = 256, min_bytes_for_wide_part = {2**30}"


class Shape(NamedTuple):
    """How one table lies on disk."""

    name: str
    columns: tuple[str, ...]
    """Each with its type and its codec."""
    order_by: str
    partition_by: str | None
    engine: str = "MergeTree"
    engine_argument: str = ""
    also: tuple[str, ...] = ()
    """Indexes and projections."""
    settings: str = _SETTINGS


def statements() -> Iterator[str]:
    """Yield what creates every table that is not there yet."""
    yield (
        f"CREATE TABLE IF NOT EXISTS {VERSIONS} (version Int64) ENGINE = MergeTree ORDER BY version"
    )
    for shape in shapes():
        yield _create(shape)


def upgrades(present: Mapping[str, Set[str]]) -> Iterator[str]:
    """Yield what adds the columns that tables of an earlier version lack.

    Rows that are there have the column's default: NULL if it may be, else 0 or the empty text.
    """
    for shape in shapes():
        for column in shape.columns:
            if column.partition(" ")[0] not in present[shape.name]:
                yield f"ALTER TABLE {shape.name} ADD COLUMN IF NOT EXISTS {column}"


def shapes() -> Sequence[Shape]:
    """Return every table."""
    return (
        _of(tables.resource, "id", None, engine="ReplacingMergeTree"),
        _of(tables.span, "id", _DAY),
        _of(
            tables.span_key,
            "(trace_id, span_id)",
            _DAY,
            settings=_BY_TRACE,
        ),
        _of(tables.content, "id", _DAY),
        _of(
            tables.generation,
            "(rollout, cohort, arm, start_unix_ns, id)",
            _DAY,
            also=(
                "INDEX by_id id TYPE minmax GRANULARITY 1",
                "PROJECTION by_pair (SELECT * ORDER BY rollout, prompt_id, repeat, arm)",
            ),
        ),
        _of(
            tables.score,
            "(trace_id, span_id, metric, evaluator, version)",
            None,
            engine="ReplacingMergeTree",
            engine_argument="revision",
            also=("INDEX by_revision (revision, first_revision) TYPE minmax GRANULARITY 1",),
            settings=_BY_TRACE,
        ),
        _feedback(),
        *_rollups(),
    )


def _feedback() -> Shape:
    shape = _of(
        tables.feedback,
        "(trace_id, span_id, kind, source)",
        None,
        engine="ReplacingMergeTree",
        engine_argument="revision",
    )
    return shape._replace(columns=(*shape.columns, "revision Int64"))


_STATE: Final = (
    "first_start_unix_ns SimpleAggregateFunction(min, Int64)",
    "last_end_unix_ns SimpleAggregateFunction(max, Int64)",
    # By the number of the count or the metric in `store.rollups.state`.
    "counts_high SimpleAggregateFunction(sumMap, Map(UInt8, Int64))",
    "counts_low SimpleAggregateFunction(sumMap, Map(UInt8, Int64))",
    "n SimpleAggregateFunction(sumMap, Map(UInt8, Int64))",
    "total SimpleAggregateFunction(sumMap, Map(UInt8, Float64))",
    "squares SimpleAggregateFunction(sumMap, Map(UInt8, Float64))",
    "smallest SimpleAggregateFunction(minMap, Map(UInt8, Float64))",
    "largest SimpleAggregateFunction(maxMap, Map(UInt8, Float64))",
    # The same bins as on the other databases, by metric and bin.
    "bins SimpleAggregateFunction(sumMap, Map(UInt32, Int64))",
)


def _rollups() -> Iterator[Shape]:
    """Yield the rollups: what a commit adds, by its last id, and what folds made of them."""
    key = ("series_id Int64", "start_unix_s Int64 CODEC(Delta, ZSTD(1))")
    yield Shape(
        "rollup_delta",
        ("id Int64 CODEC(Delta, ZSTD(1))", *key, *_STATE),
        order_by="(series_id, start_unix_s, id)",
        partition_by=_DAY,
    )
    for name in ("rollup_minute", "rollup_hour"):
        yield Shape(
            name,
            (*key, "up_to Int64", *_STATE),
            # With the fold that made it, so that a fold which nobody may see yet merges with none.
            order_by="(series_id, start_unix_s, up_to)",
            # Not by day: of its generations' starts there may be hundreds in one commit.
            partition_by=None,
            engine="AggregatingMergeTree",
            settings=_ROLLED_UP,
        )


def _of(  # Any: the rest of a shape
    table: Table, order_by: str, partition_by: str | None, **rest: Any
) -> Shape:
    columns = tuple(_column(column) for column in table.columns)
    return Shape(table.name, columns, order_by, partition_by, **rest)


def _column(column: Column[object]) -> str:
    codec = _CODECS.get(column.name, "CODEC(ZSTD(1))")
    return f"{column.name} {_type(column)} {codec}"


def _type(column: Column[object]) -> str:
    kind = "String"
    if column.name in _FIXED:
        kind = f"FixedString({_FIXED[column.name]})"
    elif isinstance(column.type, Boolean):
        kind = "Bool"
    elif isinstance(column.type, Double):
        kind = "Float64"
    elif isinstance(column.type, BigInteger):
        kind = "Int64"
    elif isinstance(column.type, LargeBinary):
        return "Nullable(String)" if column.nullable else "String"
    if column.nullable:
        kind = f"Nullable({kind})"
    return f"LowCardinality({kind})" if column.name in _FEW_VALUES else kind


def _create(shape: Shape) -> str:
    body = ",\n  ".join((*shape.columns, *shape.also))
    partition = f"PARTITION BY {shape.partition_by}\n" if shape.partition_by else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {shape.name} (\n  {body}\n)\n"
        f"ENGINE = {shape.engine}({shape.engine_argument})\n"
        f"{partition}ORDER BY {shape.order_by}\nSETTINGS {shape.settings}"
    )
