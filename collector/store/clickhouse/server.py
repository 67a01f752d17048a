"""A ClickHouse server, or chdb's engine in this process: statements, rows in and rows out."""

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
from collector.store.clickhouse import faults, marks, schema

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
    # As SQL has it: NULL of nothing, NULL where a join finds nothing.
    "aggregate_functions_null_for_empty": 1,
    "join_use_nulls": 1,
    # Of rows that replace each other, the last.
    "final": 1,
    "output_format_arrow_string_as_string": 0,
    "max_query_size": 64 * 1024 * 1024,
    # Answered once it is stored.
    "async_insert": 0,
}


class Target(NamedTuple):
    """Where to connect to."""

    where: str
    """For messages: without the password."""
    database: str
    arguments: dict[str, Any]
    """Of clickhouse-connect's client; Any: as it takes them."""


def parse(analytics_url: str) -> Target:
    """Return what the URL names; raises `StoreError` if it is none of ClickHouse's."""
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
    # Without parameters that may hold a token, or what unlocks a certificate.
    shown = {name: value for name, value in url.query.items() if name in _SHOWN}
    where = url.set(query=shown).render_as_string(hide_password=True)
    return Target(where, database, _arguments(url, query))


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
        "query_retries": 0,  # who sent the batch sends it again, and nothing is there twice
        "autogenerate_session_id": False,  # one session takes one statement at a time
        "show_clickhouse_errors": "scrub",  # without the request's URL
        **query,
    }


class ClickHouse:
    """Connections to one database; any thread may use it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._first: Client | None = None
        self._idle: list[Client] = []
        self._lock = threading.Lock()
        self._closed = False
        self.known_resources: set[int] = set()
        """Ids of resources that this process has stored."""
        self.last_tried_id = 0
        """The last id that this process has written under, or may have."""

    @classmethod
    def open(cls, analytics_url: str) -> "ClickHouse":
        """Connect, and create the database or bring it to the newest schema if needed.

        Raises `StoreError` for a URL that is none, for a database that a newer version has
        written, or if the driver is not installed; `StoreUnavailableError` if nobody answers.
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
        """The URL, without the password."""
        return self._target.where

    def create(self) -> None:
        """Create what is not there yet, and add the columns that an earlier version lacks."""
        target = self._target
        with faults.translated(self.where):
            # Kept: what chdb holds in memory ends with the last connection.
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
        """Return the columns of each table."""
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
        """Return the answer's columns."""
        with self._client() as client:
            # Not `query_arrow`, which has settings of its own, at the price that `_clause` tells.
            answer = client.raw_query(sql + _clause(settings), fmt="Arrow")
        return pa.ipc.open_file(answer).read_all()

    def command(self, sql: str, settings: Mapping[str, Any] | None = None) -> None:
        """Carry out a statement that answers nothing; one with settings is a SELECT's INSERT."""
        with self._client() as client:
            client.command(sql + _clause(settings))

    def insert(self, table_name: str, rows: pa.Table) -> None:
        """Insert rows; on return they are stored, seen by all, and counted once."""
        with self._client() as client:
            client.insert_arrow(table_name, rows)

    def alter(self, table_name: str, change: str) -> None:
        """Change a table's parts, and wait until that is done."""
        with self._client() as client:
            client.command(
                f"ALTER TABLE {table_name} {change}",
                # `mutations_sync`: 2 waits for every replica.
                settings={"mutations_sync": 2, "alter_sync": 2},
            )

    def days(self, table_name: str) -> list[int]:
        """Return the days that the table has a partition of, in order."""
        found = self.query(
            "SELECT DISTINCT toInt64(partition) AS day FROM system.parts WHERE active "  # noqa: S608  # names are ours
            f"AND database = '{self._target.database}' AND table = '{table_name}' ORDER BY day"
        )
        return found.column(0).to_pylist()  # type: ignore[no-any-return]

    def newest_id(self, after: int) -> int | None:
        """Return the last id beyond one that any row has, counted or not; None if none has."""
        # Beyond an id no part is read that ends before it: without, every row would be.
        each = " UNION ALL ".join(
            f"SELECT max(id) AS last FROM {name} WHERE id > {after}"  # noqa: S608  # names are ours
            for name in marks.FIRST_WRITTEN
        )
        found: int | None = self.query(f"SELECT max(last) FROM ({each})").column(0)[0].as_py()  # noqa: S608
        return found

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return rows and bytes on disk of each table that holds any, of this server alone."""
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
    """Return the settings as the end of a statement.

    Given to the driver it would, with chdb, look up, set and set back each in statements of their
    own, which take several times as long as most queries.
    """
    if not settings:
        return ""
    each = (f"{name} = {_literal(value)}" for name, value in settings.items())
    return f" SETTINGS {', '.join(each)}"


def _literal(value: int | str) -> str:
    if isinstance(value, int):
        return str(int(value))
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
    # They warn of each request that fails, for every sender; the collector says once what does.
    for name in ("clickhouse_connect", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return create_client
