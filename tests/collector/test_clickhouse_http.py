"""ClickHouse over HTTP: 503 while it does not work, then 200, and nothing lost or counted twice."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import clickhouse_server
import httpx
import pytest
from clickhouse_server import Fault
from collector_in_process import http_of
from commands import command_of, run_to_end
from made_generations import pair_side
from otlp_bodies import PROTOBUF, body_of
from sqlalchemy import insert

from collector.contract import encode
from collector.settings import Settings
from collector.store import Store, progress, rollouts, rollup_reads, scores, tables
from collector.store.clickhouse import AnalyticsConnection, watermarks
from collector.store.upkeep import rollup_check

WRITES = ("span_key", "resource", "span", "generation", "rollup_delta")

pytest.importorskip("chdb")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clickhouse_server.Server]:
    folder = tmp_path_factory.mktemp("clickhouse") / "data"
    with clickhouse_server.running(folder) as started:
        yield started


class Sender:
    """Posts generations to a collector, and knows which of them were acknowledged."""

    def __init__(self, http: httpx.Client, settings: Settings) -> None:
        self.http = http
        self.settings = settings
        self._next = 2
        self.acknowledged = 0

    def body(self) -> bytes:
        """Make the next 10 generations, which are 5 pairs."""
        numbers = range(self._next, self._next + 10)
        self._next += 10
        made = [
            # A resource of its own, for one that is known is not written again.
            pair_side(n, service_name=f"s{numbers[0]}")
            for n in numbers
        ]
        return body_of([encode(one) for one in made])

    def post(self, body: bytes) -> httpx.Response:
        """Post them."""
        answer = self.http.post("/v1/traces", content=body, headers=PROTOBUF)
        self.acknowledged += 10 * (answer.status_code == 200)
        return answer

    def accepted(self, body: bytes | None = None) -> None:
        """Post what must be taken."""
        answer = self.post(body or self.body())
        assert answer.status_code == 200, answer.text

    def refused(self, body: bytes) -> None:
        """Post what must be told to come again."""
        answer = self.post(body)
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1"), answer.text

    def nothing_is_lost(self) -> None:
        """Check that acknowledged spans are stored once."""
        (rollout,) = self.http.get("/api/v1/rollouts").json()["rollouts"]
        arms = rollout["baseline_generations"], rollout["candidate_generations"]
        assert sum(arms) == self.acknowledged
        assert rollout["pairs"] == self.acknowledged // 2
        query = {"rollout": "k4", "limit": "1000"}
        page = self.http.get("/api/v1/generations", params=query).json()
        assert page["next"] is None
        assert len({one["span_id"] for one in page["generations"]}) == self.acknowledged
        assert len(page["generations"]) == self.acknowledged

    def rollups_equal_rows(self) -> None:
        """Check that they do."""
        with (
            Store.open(
                self.settings.database_url, analytics_url=self.settings.analytics_url
            ) as store,
            store.read() as connection,
        ):
            assert list(rollup_check.differences(connection)) == []


@pytest.fixture(scope="module")
def one_sender(
    server: clickhouse_server.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sender]:
    """Send to a collector in this process, whose ClickHouse answers within 5 s."""
    settings = Settings(
        database_url=f"sqlite:///{tmp_path_factory.mktemp('relational') / 'draftgate.db'}",
        analytics_url=server.url("faults", send_receive_timeout=5),
    )
    with http_of(settings) as http:
        yield Sender(http, settings)


@pytest.fixture
def sender(one_sender: Sender, server: clickhouse_server.Server) -> Iterator[Sender]:
    """Send to a collector that works, whatever the last test did to it."""
    one_sender.accepted()
    yield one_sender
    server.fault()


def told(caplog: pytest.LogCaptureFixture) -> str:
    """Return the one warning there is of storing, which must hold no password."""
    apart = ("collector.api.request_log", "collector.serving.upkeep")
    warned = [r for r in caplog.records if r.levelno >= logging.WARNING and r.name not in apart]
    (line,) = [record.getMessage() for record in warned]
    assert "s3cret" not in line
    assert clickhouse_server.PASSWORD not in line
    return line


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("INSERT INTO `span` ", code=252, text="Too many parts (301)"), "Too many parts"),
        (Fault("INSERT INTO `generation`", code=241, text="Memory limit"), "Memory limit"),
        (Fault("INSERT INTO `span_key`", code=164, text="Cannot execute: readonly"), "readonly"),
        (Fault("INSERT INTO", code=242, text="Table is in readonly mode"), "readonly"),
        (Fault("INSERT INTO", code=243, text="No space left"), "No space"),
        (
            Fault("INSERT INTO", status=404, code=60, text="Table x does not exist"),
            "does not exist",
        ),
        (Fault("", status=404, code=81, text="Database x does not exist"), "does not exist"),
        (Fault("", status=403, code=516, text="Authentication failed"), "Authentication failed"),
        (Fault("", status=403, code=497, text="Not enough privileges"), "Not enough privileges"),
        (Fault("", code=745, status=503, text="Server overloaded"), "Server overloaded"),
        (Fault("", status=503, text="<html>no backend</html>"), "HTTP status 503"),
        (Fault("INSERT INTO `generation`", wait_s=6.0, do="nothing"), "timed out"),
        (Fault("SELECT max", do="cut"), "closed connection"),
    ],
    ids=lambda value: str(value.code or value.status) if isinstance(value, Fault) else "",
)
def test_an_error_is_told_once_and_ends(
    sender: Sender,
    server: clickhouse_server.Server,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    words: str,
) -> None:
    """Whatever it is, senders are told to come again, and one line says what and where."""
    bodies = [sender.body() for _ in range(2)]
    server.fault(fault)
    for body in bodies:
        sender.refused(body)
    line = told(caplog)
    assert words in line
    assert f"draftgate:***@127.0.0.1:{server.port}" in line
    server.fault()
    for body in bodies:
        sender.accepted(body)
    sender.nothing_is_lost()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "carry_out"),
    [("span_key", False), ("generation", False), *((table, True) for table in WRITES)],
)
def test_a_server_killed_in_an_insert(
    sender: Sender, server: clickhouse_server.Server, table: str, *, carry_out: bool
) -> None:
    """Before the rows are stored, or after it but before it said so; and back on the same port."""
    bodies = [sender.body() for _ in range(2)]
    server.fault(Fault(f"INSERT INTO `{table}` ", do="die", carry_out=carry_out))
    sender.refused(bodies[0])
    server.wait()
    sender.refused(bodies[1])
    assert sender.http.get("/readyz").status_code == 503
    assert sender.http.get("/api/v1/rollouts").status_code == 503
    assert sender.http.get("/healthz").status_code == 200
    server.start()
    for body in bodies:
        sender.accepted(body)
    sender.nothing_is_lost()
    sender.rollups_equal_rows()


@pytest.mark.parametrize("table", WRITES)
def test_an_answer_that_is_lost(
    sender: Sender, server: clickhouse_server.Server, table: str
) -> None:
    """The rows are stored, the connection breaks: nobody inserts them again by itself."""
    body = sender.body()
    server.fault(Fault(f"INSERT INTO `{table}` ", do="cut", carry_out=True, times=1))
    server.log()
    sender.refused(body)
    sender.accepted(body)
    inserts = [one for one in server.log() if f"INSERT INTO `{table}` " in one.statement]
    assert len(inserts) <= 1  # the one that was cut is in no log
    sender.nothing_is_lost()


def test_a_password_is_sent_and_never_shown(
    server: clickhouse_server.Server, tmp_path: Path
) -> None:
    """The wrong one, or a database that cannot be made, ends `draftgate serve` with one line."""
    for url, words in (
        (server.url("x", password="wrong/one"), "Authentication failed"),
        (server.url("x").replace(str(server.port), "1"), "refused"),
    ):
        done = run_to_end(
            command_of("serve", "--database", f"sqlite:///{tmp_path / 'x.db'}", "--port", "0"),
            env=os.environ | {"DRAFTGATE_ANALYTICS_URL": url},
            cwd=ROOT,
        )
        assert done.returncode != 0
        assert words in done.stderr
        assert "draftgate:***@127.0.0.1" in done.stderr
        assert "wrong/one" not in done.stderr
        assert clickhouse_server.PASSWORD not in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_page_of_scores_reads_little(server: clickhouse_server.Server, database_url: str) -> None:
    """Of many scores, of this rollout and of others, those that lie near what it shows."""
    count = 100_000
    ids = "MD5(toString(number)), 'span'"
    of = "if(number % 4 = 0, 'scored', 'other')"
    score_columns = "trace_id, span_id, metric, evaluator, version, value"
    fill = (
        f"generation (id, trace_id, span_id, rollout) SELECT number + 1, {ids}, {of}",
        f"score ({score_columns}) SELECT {ids}, 'm', 'e', '1', number / {count}",
    )
    url = server.url("scores")
    with Store.open(database_url, analytics_url=url) as store:
        with store.transaction() as connection:
            assert isinstance(connection, AnalyticsConnection)
            for what in fill:
                connection.clickhouse.command(f"INSERT INTO {what} FROM numbers({count})")
            progress.reach(connection, watermarks.COMMITTED, count)
        server.log()
        shown: list[float | None] = []
        position: scores.ScorePosition | None = None
        for _ in range(3):
            with store.read() as connection:
                page = scores.page(connection, "scored", metric="m", limit=10, after=position)
            shown += [score.value for score in page.records]
            position = page.next
    reads = [one.read_rows for one in server.log() if "`score`.`value`" in one.statement]
    assert shown == [4 * n / count for n in range(30)]
    # Whole, both tables are twice the count.
    assert len(reads) == 3
    assert max(reads) < count / 3, reads


@pytest.mark.slow
def test_a_summary_reads_little(server: clickhouse_server.Server, database_url: str) -> None:
    """Of a day's rollups the hours inside and the minutes near the ends, in one statement."""
    series, minutes = 40, 24 * 60
    key = f"number % {series}, intDiv(number, {series})"
    state = "first_start_unix_ns, last_end_unix_ns, counts_low"
    fill = (
        (f"{key} * 60, 1, 0, 1, map(0, 1)", "rollup_minute", series * minutes),
        (f"{key} * 3600, 1, 0, 1, map(0, 60)", "rollup_hour", series * 24),
    )
    url = server.url("summaries")
    with Store.open(database_url, analytics_url=url) as store:
        with store.transaction() as connection:
            assert isinstance(connection, AnalyticsConnection)
            for values, table, rows in fill:
                connection.clickhouse.command(
                    f"INSERT INTO {table} (series_id, start_unix_s, up_to, {state}) "  # noqa: S608  # names are ours
                    f"SELECT {values} FROM numbers({rows})"
                )
            for mark in (watermarks.COMMITTED, watermarks.FOLDED, watermarks.HOURS):
                progress.reach(connection, mark, 1)
            named = [
                {"id": id_, "rollout": "r", "arm": "baseline", "cohort": f"c{id_:02}"}
                for id_ in range(0, series, 5)
            ]
            connection.execute(insert(tables.series), named)
        server.log()
        with store.read() as connection:
            found = rollouts.summary(
                connection, "r", rollup_reads.TimeWindow(1500, 1500 + 20 * 3600)
            )
    assert [(one.cohort, one.generations) for one in found] == [
        (one["cohort"], 20 * 60) for one in named
    ]
    # Other tests' collectors may still fold: each has a database of its own.
    mine = [one for one in server.log() if one.parameters.get("database") == "summaries"]
    (asked,) = (one for one in mine if "rollup_" in one.statement)
    assert "rollup_delta" not in asked.statement.partition("SETTINGS")[0]
    assert asked.read_rows < series * minutes / 4
