"""ClickHouse beside a relational database: no fault changes a count that a reader can see."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chdb_processes import run_steps
from made_generations import generation_of, pair_side, score_of
from otlp_bodies import received
from sqlalchemy import select

from collector.contract import encode
from collector.errors import StoreError, StoreUnavailableError
from collector.ingest.preparation import prepare
from collector.settings import Settings
from collector.store import Batch, SpanRows, Store, rollouts, rollup_reads, tables
from collector.store.clickhouse import AnalyticsConnection, ClickHouse, schema, watermarks
from collector.store.upkeep import rollup_check, sizes

TABLES = ("span_key", "resource", "span", "generation", "rollup_delta")


@pytest.fixture
def settings(new_settings: Callable[[str], Settings]) -> Settings:
    return new_settings("clickhouse")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with opened(settings) as store:
        yield store


def opened(settings: Settings) -> Store:
    return Store.open(settings.database_url, analytics_url=settings.analytics_url)


def rows_of(numbers: range) -> tuple[SpanRows, ...]:
    made = (pair_side(n) for n in numbers)
    return prepare(received([encode(one) for one in made]))


def counted(store: Store) -> tuple[int, int]:
    """Return generations and pairs, after checking that rollups equal the rows."""
    with store.read() as connection:
        assert list(rollup_check.differences(connection)) == []
        found = rollouts.overviews(connection)
    return (
        sum(one.baseline_generations + one.candidate_generations for one in found),
        sum(one.pairs for one in found),
    )


def write_without_commit(store: Store, batch: Batch) -> None:
    with store.transaction() as connection:
        assert isinstance(connection, AnalyticsConnection)
        assert store._database.writer(connection).write(batch) == len(batch.spans)
        raise RuntimeError("before the commit")


@pytest.mark.parametrize("table", TABLES)
def test_a_batch_that_fails_anywhere_is_not_there(
    store: Store, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """What was written before the fault is seen by nobody; sent again, with others, it counts."""
    store.write(Batch(spans=rows_of(range(2, 12))))
    insert = ClickHouse.insert

    def failing(self: ClickHouse, table_name: str, rows: Any) -> None:
        insert(self, table_name, rows)  # an answer that was lost on the way
        if table_name == table:
            raise StoreUnavailableError("the connection was lost")

    other = [encode(generation_of(n, service_name="other")) for n in (30, 31)]
    with monkeypatch.context() as patched:
        patched.setattr(ClickHouse, "insert", failing)
        with pytest.raises(StoreUnavailableError):
            store.write(Batch(spans=prepare(received(other)) + rows_of(range(12, 22))))
    assert counted(store) == (10, 5)
    assert store.write(Batch(spans=rows_of(range(8, 32)))) == 20
    assert counted(store) == (30, 15)
    assert store.write(Batch(spans=rows_of(range(2, 32)))) == 0
    assert counted(store) == (30, 15)


def test_a_mark_that_was_not_committed_moves_nothing(store: Store, settings: Settings) -> None:
    """Everything reached ClickHouse, but not the relational commit: another process goes on."""
    store.write(Batch(spans=rows_of(range(2, 12))))
    batch = Batch(spans=rows_of(range(12, 22)))
    with pytest.raises(RuntimeError, match="before the commit"):
        write_without_commit(store, batch)
    assert counted(store) == (10, 5)
    with opened(settings) as other:
        assert other.write(Batch(spans=rows_of(range(2, 22)))) == 10
        with other.read() as connection:
            (hole,) = watermarks.read(connection).holes
        assert hole.last - hole.first == 9
        assert counted(other) == (20, 10)
    assert counted(store) == (20, 10)


def test_a_fold_that_fails_is_done_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """States that a fold left behind are deleted before the next one, and count never."""
    store.write(Batch(spans=rows_of(range(2, 12))))
    command = ClickHouse.command

    def failing(self: ClickHouse, sql: str, settings: Any = None) -> None:
        command(self, sql, settings)
        if sql.startswith("INSERT INTO rollup_minute"):
            raise StoreUnavailableError("the connection was lost")

    with monkeypatch.context() as patched:
        patched.setattr(ClickHouse, "command", failing)
        with pytest.raises(StoreUnavailableError):
            store.fold(at_most=100)
    assert counted(store) == (10, 5)
    store.write(Batch(spans=rows_of(range(12, 22))))
    assert store.fold(at_most=100) > 0
    assert store.fold(at_most=100) == 0
    assert counted(store) == (20, 10)


def test_a_reader_sees_one_state_while_others_write_and_fold(store: Store) -> None:
    """Its first question tells what counts for it, until it ends."""
    store.write(Batch(spans=rows_of(range(2, 12))))
    with store.read() as connection:
        series = rollup_reads.series_of(connection)
        before = rollup_reads.totals(connection, series)
        store.write(Batch(spans=rows_of(range(12, 22))))
        store.fold(at_most=100)
        assert rollup_reads.totals(connection, series) == before
    assert counted(store) == (20, 10)


def test_minutes_become_hours(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window's whole hours, partial hours and unfolded rows add up at every level."""
    monkeypatch.setattr("collector.store.clickhouse.rollups._MINUTES_A_SERIES", 3)
    for part in range(6):
        spans = []
        for n in range(part * 40 + 2, part * 40 + 42):
            start = 1_700_000_000_000_000_000 + n * 97_000_000_000
            one = generation_of(n, start_unix_ns=start, end_unix_ns=start + 10**9)
            spans.append(encode(one))
        store.write(Batch(spans=prepare(received(spans))))
        if part < 5:
            store.fold(at_most=1)
    start = 1_700_000_000 // 60 * 60
    window = rollup_reads.TimeWindow(start + 1800, start + 4 * 3600 + 600)
    with store.read() as connection:
        assert watermarks.read(connection).hours > 0
        assert list(rollup_check.differences(connection)) == []
        (summed,) = rollouts.summary(connection, "k4", window)
    inside = [
        n
        for n in range(2, 242)
        if window.start_unix_s <= 1_700_000_000 + n * 97 < window.end_unix_s
    ]
    assert summed.generations == len(inside)
    assert summed.e2e_s_sum == pytest.approx(len(inside))


@pytest.mark.slow
def test_a_killed_collector_leaves_nothing_half_seen(tmp_path: Path) -> None:
    """A process that dies in the middle of a batch: the next one reads and writes on."""
    pytest.importorskip("chdb")
    script = """
import os, signal, sys
sys.path.insert(0, "tests/support")
sys.path.insert(0, "tests/collector")
from made_generations import generation_of, pair_side, score_of
from test_clickhouse import opened, rows_of, counted
from collector.settings import Settings
from collector.store import Batch
from collector.store.clickhouse import ClickHouse
store = opened(Settings(database_url=sys.argv[1], analytics_url=sys.argv[2]))
if sys.argv[3] == "die":
    store.write(Batch(spans=rows_of(range(2, 12))))
    insert = ClickHouse.insert
    def dying(self, table_name, rows):
        insert(self, table_name, rows)
        if table_name == "generation":
            os.kill(os.getpid(), signal.SIGKILL)
    ClickHouse.insert = dying
    store.write(Batch(spans=rows_of(range(12, 22))))
print(counted(store))
print(store.write(Batch(spans=rows_of(range(2, 22)))))
print(counted(store))
store.close()
"""
    done = run_steps(script, tmp_path, ("die", "go on"))
    assert done[0].returncode == -9, done[0].stderr
    assert done[1].stdout.split("\n")[:3] == ["(10, 5)", "10", "(20, 10)"], done[1].stderr


def test_a_score_keeps_its_first_revision(store: Store) -> None:
    """Posted again it has a new value and key, and is still known by when it was first posted."""
    one = generation_of(2)

    def post(*values: float) -> None:
        posted = (score_of(one, value, key_id=f"key {values}") for value in values)
        store.write(Batch(scores=tuple(posted)))

    post(0.1, 0.2)
    post(0.3)
    with store.read() as connection:
        assert isinstance(connection, AnalyticsConnection)
        rows = list(connection.rows("SELECT value, revision, first_revision, key_id FROM score"))
    assert rows == [(0.3, 3, 2, b"key (0.3,)")]


def test_where_spans_are_is_decided_once(settings: Settings, database_url: str) -> None:
    """A database with spans of its own takes no ClickHouse, and one with it is not read alone."""
    with Store.open(database_url) as alone:
        alone.write(Batch(spans=rows_of(range(2, 4))))
    with pytest.raises(StoreError, match="holds spans itself"):
        Store.open(database_url, analytics_url=settings.analytics_url)
    with opened(settings) as beside:
        beside.write(Batch(spans=rows_of(range(2, 4))))
    with pytest.raises(StoreError, match="set DRAFTGATE_ANALYTICS_URL"):
        Store.open(settings.database_url)
    # Keys are there whatever happens to ClickHouse.
    Store.open(settings.database_url, relational_only=True).close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://host/x", "not a supported kind of analytics database"),
        ("nonsense", "is no database URL"),
        ("clickhousedb://host/a;b", "letters, digits and _ alone"),
        ("clickhousedb://127.0.0.1:1/draftgate", "check that the ClickHouse server is up"),
    ],
)
def test_what_cannot_be_used_is_one_line(database_url: str, url: str, message: str) -> None:
    """A URL of another kind, a name that is none, a server that is not there."""
    with pytest.raises(StoreError, match=message):
        Store.open(database_url, analytics_url=url)


def test_sizes_are_clickhouses_own(store: Store) -> None:
    """`draftgate db stats` shows rows and bytes of both databases in one table."""
    store.write(Batch(spans=rows_of(range(2, 12))))
    with store.read() as connection:
        found = sizes.of_tables(connection)
    assert found["generation"].rows == found["span"].rows == 10
    assert (found["generation"].size_bytes or 0) > 0
    assert found["series"].rows == 2
    assert store.size_bytes() > 0


def test_a_store_of_an_earlier_version_gets_the_columns_that_it_lacks(settings: Settings) -> None:
    """Opened by a newer version, it keeps its rows, and holds the new column of those to come."""
    with opened(settings) as store:
        store.write(Batch(spans=rows_of(range(2, 12))))
        clickhouse = clickhouse_of(store)
        clickhouse.command("ALTER TABLE generation DROP COLUMN server_ttft_s")
        clickhouse.command("ALTER TABLE rollup_hour DROP COLUMN squares")
        clickhouse.command(f"DROP TABLE {schema.VERSIONS}")
        lacking = clickhouse._columns()
    assert "server_ttft_s" not in lacking["generation"]
    with opened(settings) as store:
        present = clickhouse_of(store)._columns()
        assert all(
            {column.split()[0] for column in shape.columns} == present[shape.name]
            for shape in schema.shapes()
        )
        newer = [encode(generation_of(n, server_ttft_s=0.25)) for n in range(12, 22)]
        assert store.write(Batch(spans=prepare(received(newer)))) == 10
        with store.read() as connection:
            known = connection.scalars(
                select(tables.generation.c.server_ttft_s).order_by(tables.generation.c.id)
            ).all()
        assert known == [None] * 10 + [0.25] * 10
        assert clickhouse_of(store)._version() == schema.VERSION


def test_a_store_of_a_newer_version_is_left_as_it_is(settings: Settings) -> None:
    """It is refused in one line that says what to do."""
    with opened(settings) as store:
        clickhouse_of(store).command("INSERT INTO schema_version VALUES (1000)")
    with pytest.raises(StoreError, match=r"newer Draftgate \(schema 1000, .* upgrade Draftgate"):
        opened(settings)


def test_a_changed_table_has_a_higher_version() -> None:
    """A changed table needs a higher version, which alone makes a store upgrade."""
    text = "\n".join(schema.statements())
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert (schema.VERSION, digest[:16]) == (1, "02a2e888b91681b8")


def test_a_cluster_is_refused() -> None:
    """The tables are one server's."""
    with pytest.raises(StoreError, match=r"cluster: .* name one server"):
        ClickHouse.open("clickhousedb://host/db?cluster=main")


def clickhouse_of(store: Store) -> ClickHouse:
    with store.read() as connection:
        assert isinstance(connection, AnalyticsConnection)
        return connection.clickhouse
