"""Connections to a ClickHouse server, or to chdb's engine in this process."""

import logging
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from collector.errors import StoreError
from collector.store.clickhouse import faults, schema, watermarks

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

WANTED: Final = (
    "clickhousedb://user:password@host:8123/database, or "
    "clickhousedb:///database?interface=chdb&path=folder"
)
_SHOWN: Final = frozenset({"interface", "path", "secure"})
_CONNECT_TIMEOUT_S: Final = 5
_ANSWER_TIMEOUT_S: Final = 60
_SETTINGS: Final[Mapping[str, Any]] = {  # Any: as ClickHouse takes them
    # Standard SQL: aggregates of no rows are NULL, and so are columns of unmatched joins.
    "aggregate_functions_null_for_empty": 1,
    "join_use_nulls": 1,
    # Read only the newest of rows that replace each other.
    "final": 1,
    "output_format_arrow_string_as_string": 0,
    "max_query_size": 64 * 1024 * 1024,
    # An insert is answered after it is stored.
    "async_insert": 0,
}


class AnalyticsUrl(NamedTuple):
    """A parsed analytics URL."""

    where: str
    """The URL for messages, without secrets."""
    database: str
    arguments: dict[str, Any]
    """Arguments of clickhouse-connect's client; Any: each argument's type."""


def parse(analytics_url: str) -> AnalyticsUrl:
    """Parse the URL; raises `StoreError` if it is not a ClickHouse URL."""
    try:
        url = make_url(analytics_url)
    except ArgumentError as exc:
        raise StoreError(f"{analytics_url!r}: is no database URL; wanted {WANTED}") from exc
    if url.drivername not in ("clickhousedb", "clickhousedb+connect", "clickhouse"):
        raise StoreError(
            f"{url.drivername}://…: is not a supported kind of analytics database; wanted {WANTED}"
        )
    query = {name: str(value) for name, value in url.query.items()}
    if "cluster" in query:
        raise StoreError(
            "cluster: Draftgate's tables are one server's; leave it out, and name one server"
        )
    database = url.database or "draftgate"
    if not database.replace("_", "").isalnum():
        raise StoreError(f"database {database!r}: wanted letters, digits and _ alone")
    # Parameters that may contain a token or a certificate's password are not shown.
    shown = {name: value for name, value in url.query.items() if name in _SHOWN}
    where = url.set(query=shown).render_as_string(hide_password=True)
    return AnalyticsUrl(where, database, _arguments(url, query))


def _arguments(url: URL, query: dict[str, str]) -> dict[str, Any]:
    if query.pop("interface", None) == "chdb":
        return {"interface": "chdb", **({"path": query["path"]} if "path" in query else {})}
    return {
        "host": url.host or "localhost",
        "port": url.port or 0,
        "username": url.username or "default",
        "password": url.password or "",
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "send_receive_timeout": _ANSWER_TIMEOUT_S,
        "query_retries": 0,  # the batch's sender retries, which is idempotent
        "autogenerate_session_id": False,  # a session executes only one statement at a time
        "show_clickhouse_errors": "scrub",  # without the request's URL
        **query,
    }


class ClickHouse:
    """A thread-safe pool of connections to one database."""

    def __init__(self, target: AnalyticsUrl) -> None:
        self._target = target
        self._first: Client | None = None
        self._idle: list[Client] = []
        self._lock = threading.Lock()
        self._closed = False
        self.known_resources: set[int] = set()
        """Ids of resources that this process has stored."""
        self.last_tried_id = 0
        """The last id that this process has written, or tried to write."""

    @classmethod
    def open(cls, analytics_url: str) -> "ClickHouse":
        """Connect; create the database or upgrade its schema if needed.

        Raises `StoreError` for an invalid URL, for a database written by a newer version, or if the
        driver is not installed; `StoreUnavailableError` if the server does not answer.
        """
        opened = cls(parse(analytics_url))
        try:
            opened.create()
        except BaseException:
            opened.close()
            raise
        return opened

    @property
    def where(self) -> str:
        """The URL without secrets."""
        return self._target.where

    def create(self) -> None:
        """Create missing tables, and add columns missing in those of an earlier version."""
        target = self._target
        with faults.translated(self.where):
            # Kept open: chdb's in-memory data is lost with the last connection.
            self._first = _connect(target.arguments, None, _SETTINGS)
            self._first.command(f"CREATE DATABASE IF NOT EXISTS {target.database}")
        present = self._columns()
        version = self._version() if schema.VERSIONS in present else 0
        if version > schema.VERSION:
            raise StoreError(
                f"{self.where}: was written by a newer Draftgate (schema {version}, this one knows "
                f"{schema.VERSION}); upgrade Draftgate, or name another database"
            )
        if version == schema.VERSION:
            return
        for statement in schema.statements():
            self.command(statement)
        for statement in schema.upgrades(self._columns()):
            self.command(statement)
        self.command(f"INSERT INTO {schema.VERSIONS} VALUES ({schema.VERSION})")  # noqa: S608  # ours

    def _columns(self) -> dict[str, set[str]]:
        """Return the column names of each table."""
        found: dict[str, set[str]] = defaultdict(set)
        answer = self.query(
            "SELECT table, name FROM system.columns "  # noqa: S608  # names are ours
            f"WHERE database = '{self._target.database}'"
        )
        for row in answer.to_pylist():
            found[row["table"].decode()].add(row["name"].decode())
        return found

    def _version(self) -> int:
        found = self.query(f"SELECT max(version) FROM {schema.VERSIONS}")  # noqa: S608  # ours
        return found.column(0)[0].as_py() or 0

    def query(self, sql: str, settings: Mapping[str, Any] | None = None) -> pa.Table:
        """Return the query's result."""
        with self._client() as client:
            # Not `query_arrow`: it passes settings to the driver, which is slow (see `_clause`).
            answer = client.raw_query(sql + _clause(settings), fmt="Arrow")
        return pa.ipc.open_file(answer).read_all()

    def command(self, sql: str, settings: Mapping[str, Any] | None = None) -> None:
        """Execute a statement without a result; settings are only valid for INSERT … SELECT."""
        with self._client() as client:
            client.command(sql + _clause(settings))

    def insert(self, table_name: str, rows: pa.Table) -> None:
        """Insert rows once; on return they are stored and every connection can read them."""
        with self._client() as client:
            client.insert_arrow(table_name, rows)

    def alter(self, table_name: str, change: str) -> None:
        """Run ALTER TABLE and wait until the change is complete."""
        with self._client() as client:
            client.command(
                f"ALTER TABLE {table_name} {change}",
                # `mutations_sync`: 2 waits for every replica.
                settings={"mutations_sync": 2, "alter_sync": 2},
            )

    def days(self, table_name: str) -> list[int]:
        """Return the days for which the table has a partition, in order."""
        found = self.query(
            "SELECT DISTINCT toInt64(partition) AS day FROM system.parts WHERE active "  # noqa: S608  # names are ours
            f"AND database = '{self._target.database}' AND table = '{table_name}' ORDER BY day"
        )
        return found.column(0).to_pylist()  # type: ignore[no-any-return]

    def newest_id(self, after: int) -> int | None:
        """Return the highest id above `after` of any row, visible or not; None if none is above."""
        # The condition lets ClickHouse skip parts; without it every row would be read.
        each = " UNION ALL ".join(
            f"SELECT max(id) AS last FROM {name} WHERE id > {after}"  # noqa: S608  # names are ours
            for name in watermarks.FIRST_WRITTEN
        )
        found: int | None = self.query(f"SELECT max(last) FROM ({each})").column(0)[0].as_py()  # noqa: S608
        return found

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return rows and bytes on this server's disk, by table; omit empty tables."""
        found = self.query(
            "SELECT table, sum(rows) AS rows, sum(bytes_on_disk) AS bytes FROM system.parts "  # noqa: S608  # names are ours
            f"WHERE active AND database = '{self._target.database}' GROUP BY table"
        ).to_pylist()
        return {row["table"].decode(): (row["rows"], row["bytes"]) for row in found}

    def close(self) -> None:
        """Close every connection; may be called twice."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
            first, self._first = self._first, None
        for client in (*idle, first):
            if client is not None:
                client.close()

    @contextmanager
    def _client(self) -> Iterator["Client"]:
        with faults.translated(self.where):
            with self._lock:
                client = self._idle.pop() if self._idle else None
            if client is None:
                client = _connect(self._target.arguments, self._target.database, _SETTINGS)
            try:
                yield client
            except BaseException:
                client.close()
                raise
            with self._lock:
                if not self._closed:
                    self._idle.append(client)
                    return
            client.close()


def _clause(settings: Mapping[str, Any] | None) -> str:
    """Return the settings as a SETTINGS clause.

    For chdb, the driver would look up, set and reset each setting in separate statements, which
    take several times as long as most queries.
    """
    if not settings:
        return ""
    each = (f"{name} = {literal(value)}" for name, value in settings.items())
    return f" SETTINGS {', '.join(each)}"


def literal(value: float | str) -> str:
    """Return the value as ClickHouse's SQL has it; a boolean as 1 or 0."""
    if isinstance(value, int | float):
        return str(+value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _connect(
    arguments: Mapping[str, Any], database: str | None, settings: Mapping[str, Any]
) -> "Client":
    named = {"database": database} if database is not None else {}
    client: Client = _driver()(**arguments, **named, settings=dict(settings))
    return client


def _driver() -> Any:  # Any: clickhouse-connect's factory
    try:
        from clickhouse_connect.driver import create_client  # noqa: PLC0415  # an extra
    except ImportError as exc:
        raise StoreError(
            "DRAFTGATE_ANALYTICS_URL: clickhouse-connect is not installed; "
            "pip install 'draftgate[clickhouse]'"
        ) from exc
    # These log every failed request; the collector logs an outage once.
    for name in ("clickhouse_connect", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return create_client
