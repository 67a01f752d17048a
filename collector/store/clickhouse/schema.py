"""The tables on ClickHouse, as SQL statements.

They have the columns of `store.tables`. A day of arrival is a partition by id, as on PostgreSQL.
Generations are ordered by (rollout, cohort, arm, time), and in a projection by the pairing key.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Boolean, Column, Double, LargeBinary, Table

from collector.contract.fields import WIRE
from collector.store import tables
from collector.store.days import DAY_BITS

VERSION: Final = 1
"""Version of this schema; increase it with every change, which `upgrades` then applies."""
VERSIONS: Final = "schema_version"
"""The table that stores the versions of a database's schema."""
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
"""Text columns with few distinct values per part."""
_CODECS: Final = {
    "id": "CODEC(Delta, ZSTD(1))",
    "start_unix_ns": "CODEC(Delta, ZSTD(1))",
    "end_unix_ns": "CODEC(Delta, ZSTD(1))",
    # Compressed already by the collector.
    "payload": "CODEC(NONE)",
    "attributes": "CODEC(NONE)",
}
# An acknowledged insert is on disk.
_SETTINGS: Final = "allow_nullable_key = 1, fsync_after_insert = 1"
# A batch or a page looks up many scattered traces.
_BY_TRACE: Final = f"{_SETTINGS}, index_granularity = 1024"

# A summary reads a few hundred scattered rows of a kilobyte each: small granules, and all columns
# in one file.
_ROLLED_UP: Final = f"{_SETTINGS}, index_granularity = 256, min_bytes_for_wide_part = {2**30}"


class Shape(NamedTuple):
    """The layout of one table."""

    name: str
    columns: tuple[str, ...]
    """Column definitions: name, type and codec."""
    order_by: str
    partition_by: str | None
    engine: str = "MergeTree"
    engine_argument: str = ""
    also: tuple[str, ...] = ()
    """Indexes and projections."""
    settings: str = _SETTINGS


def statements() -> Iterator[str]:
    """Yield the statements that create missing tables."""
    yield (
        f"CREATE TABLE IF NOT EXISTS {VERSIONS} (version Int64) ENGINE = MergeTree ORDER BY version"
    )
    for shape in shapes():
        yield _create(shape)


def upgrades(present: Mapping[str, Set[str]]) -> Iterator[str]:
    """Yield the statements that add columns missing in tables of an earlier version.

    Existing rows get the column's default: NULL if it is nullable, else 0 or the empty string.
    """
    for shape in shapes():
        for column in shape.columns:
            if column.partition(" ")[0] not in present[shape.name]:
                yield f"ALTER TABLE {shape.name} ADD COLUMN IF NOT EXISTS {column}"


def shapes() -> Sequence[Shape]:
    """Return the layout of every table."""
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


STATE: Final = (
    "first_start_unix_ns SimpleAggregateFunction(min, Int64)",
    "last_end_unix_ns SimpleAggregateFunction(max, Int64)",
    # Keys are the numbers of counts or metrics in `store.rollups.state`.
    "counts_high SimpleAggregateFunction(sumMap, Map(UInt8, Int64))",
    "counts_low SimpleAggregateFunction(sumMap, Map(UInt8, Int64))",
    "n SimpleAggregateFunction(sumMap, Map(UInt8, Int64))",
    "total SimpleAggregateFunction(sumMap, Map(UInt8, Float64))",
    "squares SimpleAggregateFunction(sumMap, Map(UInt8, Float64))",
    "smallest SimpleAggregateFunction(minMap, Map(UInt8, Float64))",
    "largest SimpleAggregateFunction(maxMap, Map(UInt8, Float64))",
    # The same histogram bins as on the other databases; keys combine metric and bin.
    "bins SimpleAggregateFunction(sumMap, Map(UInt32, Int64))",
)


def _rollups() -> Iterator[Shape]:
    """Yield the rollup tables: the commits' deltas, and the minutes and hours that folds write."""
    key = ("series_id Int64", "start_unix_s Int64 CODEC(Delta, ZSTD(1))")
    yield Shape(
        "rollup_delta",
        ("id Int64 CODEC(Delta, ZSTD(1))", *key, *STATE),
        order_by="(series_id, start_unix_s, id)",
        partition_by=_DAY,
    )
    for name in ("rollup_minute", "rollup_hour"):
        yield Shape(
            name,
            (*key, "up_to Int64", *STATE),
            # Includes the fold's `up_to`, so that rows of an invisible fold are not merged with
            # visible ones.
            order_by="(series_id, start_unix_s, up_to)",
            # Not by day: one commit may contain start times of hundreds of days.
            partition_by=None,
            engine="AggregatingMergeTree",
            settings=_ROLLED_UP,
        )


def _of(  # Any: the other fields of a shape
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
