"""Several collectors on one database: each knows, and goes on with, what another does."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from collector_in_process import http_of
from commands import command_of
from made_generations import pair_side
from otlp_bodies import received
from postgres_cluster import Postgres
from sqlalchemy import Connection, update
from waiting import until

from benchmarks.side_by_side import Team
from collector.api_key import ApiKey, Scope, digest, new_key_text
from collector.contract import encode
from collector.errors import StoreUnavailableError
from collector.ingest.preparation import prepare
from collector.serving.upkeep import LEASED_S, Upkeep
from collector.settings import Settings
from collector.store import Batch, Keep, Store, clock, keys, pair_counts
from collector.store.postgres.server import _WRITER_LOCK
from collector.store.tables import key_bucket, upkeep_lease
from collector.store.upkeep import rollup_check

LATER_S = 60.0


@pytest.fixture(params=["sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, new_database_url: Callable[[str], str]
) -> Iterator[Store]:
    """Open an empty database of each kind."""
    with Store.open(new_database_url(request.param)) as opened:
        yield opened


@pytest.fixture
def postgres_url(new_database_url: Callable[[str], str]) -> str:
    """Name an empty database in PostgreSQL."""
    return new_database_url("postgresql")


def write(store: Store, numbers: range) -> None:
    for n in numbers:
        store.write(Batch(spans=prepare(received([encode(pair_side(n))]))))


def upkeep_of(store: Store) -> Upkeep:
    """Return upkeep to which everything has been due for long."""
    made = Upkeep(store, Keep(), clock=lambda: time.time() + LATER_S)
    made._tasks = dict.fromkeys(made._tasks, 0.0)
    made._folded = 0.0
    return made


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost_with_one_killed_and_one_paused(
    tmp_path: Path, postgres: Postgres
) -> None:
    """Senders go elsewhere; each span is stored once, and rollups and pairs equal the rows."""
    team = Team(tmp_path, postgres, seed=20261121)
    try:
        done = list(team.run(5))
    finally:
        team.stop()
    assert len(done) == 5
    assert sum(one.unanswered for one in done) > 0, "neither the kill nor the pause was noticed"


def test_one_collector_does_the_upkeep_until_it_says_nothing_any_more(store: Store) -> None:
    """The first that finds work keeps it; when its lease has run out another takes over."""
    first, second = upkeep_of(store), upkeep_of(store)
    write(store, range(2, 8))
    assert first.step() > 0
    write(store, range(8, 14))
    assert second.step() == 0
    with store.read() as connection:
        assert connection.reader.pending_deltas() > 0
    expire(store)
    while second.step():
        pass
    with store.read() as connection:
        assert connection.reader.pending_deltas() == 0
        assert list(rollup_check.differences(connection)) == []
        assert pair_counts.counts(connection) == {"k4": 6}
    first._ours_until_s = 0.0  # as of one that was paused beyond its lease
    write(store, range(14, 16))
    assert first.step() == 0


def expire(store: Store) -> None:
    """Let the upkeep's lease have been taken so long ago that it has run out."""
    with store.transaction() as connection:
        shift(connection, -LEASED_S)


def shift(connection: Connection, by_s: float) -> None:
    by_ns = int(by_s * 1e9)
    connection.execute(
        update(upkeep_lease).values(
            taken_unix_ns=upkeep_lease.c.taken_unix_ns + by_ns,
            expires_unix_ns=upkeep_lease.c.expires_unix_ns + by_ns,
        )
    )


def test_a_lease_of_a_clock_that_was_set_back_is_not_waited_for(store: Store) -> None:
    """Taken in the future by the database's clock, it is anybody's."""
    assert store.take_upkeep("first", 10)
    assert not store.take_upkeep("second", 10)
    with store.transaction() as connection:
        shift(connection, 3600)
    assert store.take_upkeep("second", 10)


def test_a_collector_that_ends_leaves_the_upkeep_to_the_next(store: Store) -> None:
    """Nobody waits for the lease of one that was stopped well."""
    first, second = upkeep_of(store), upkeep_of(store)
    write(store, range(2, 4))
    first.start()
    until(lambda: first._ours_until_s > 0)
    first.stop()
    write(store, range(4, 6))
    assert second.step() > 0


def test_a_machine_with_another_time_changes_no_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database's clock decides, not that of the collector's process."""
    assert store.take_upkeep("first", 10)
    with store.read() as connection:
        assert abs(clock.now_unix_ns(connection) - time.time_ns()) < 60 * 10**9
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "time_ns", lambda: int(4e18))
    assert not store.take_upkeep("second", 10)


def test_a_use_of_a_key_that_is_noted_late_hides_no_later_one(store: Store) -> None:
    """Of two collectors that saw a key, the later use stays, in either order of writes."""
    key = ApiKey(
        id="00000001",
        name="t",
        digest=digest("s"),
        scopes=frozenset({Scope.READ}),
        project=None,
        rate_per_s=None,
        created_unix_ns=1,
        expires_unix_ns=None,
        revoked_unix_ns=None,
        last_used_unix_ns=None,
    )
    with store.transaction() as connection:
        keys.add(connection, key)
        keys.note_use(connection, {key.id: 9})
        keys.note_use(connection, {key.id: 7})
        stored = keys.by_id(connection, key.id)
    assert stored is not None
    assert stored.last_used_unix_ns == 9


def test_collectors_count_a_keys_rate_together(postgres_url: str) -> None:
    """A burst of a second's requests over all of them, whichever is asked; then 429."""
    text = new_key_text()
    key = ApiKey(
        id=text.id,
        name="t",
        digest=digest(text.secret),
        scopes=frozenset({Scope.READ}),
        rate_per_s=0.05,
        created_unix_ns=1,
    )
    settings = Settings(database_url=postgres_url, require_keys=True)
    headers = {"Authorization": f"Bearer {text}"}
    with (
        Store.open(postgres_url) as store,
        http_of(settings) as first,
        http_of(settings) as second,
    ):
        with store.transaction() as connection:
            keys.add(connection, key)
        answers = [http.get("/api/v1/rollouts", headers=headers) for http in (first, second)]
        assert [answer.status_code for answer in answers] == [200, 429]
        assert 1 <= int(answers[1].headers["retry-after"]) <= 20
        with store.transaction() as connection:
            connection.execute(update(key_bucket).values(full_unix_us=0))
        assert second.get("/api/v1/rollouts", headers=headers).status_code == 200


def test_a_shared_bucket_holds_a_seconds_tokens_and_no_more(postgres_url: str) -> None:
    """Among threads too; one of a clock that was set back is full again."""
    with Store.open(postgres_url) as store:
        # Half a token comes back in 500 s: none does while this runs.
        assert [store.take_token("slow", 0.001) == 0 for _ in range(3)] == [True, False, False]
        assert 900 <= store.take_token("slow", 0.001) <= 1000
        with store.transaction() as connection:
            connection.execute(update(key_bucket).values(full_unix_us=2**62))
        assert store.take_token("slow", 0.001) == 0
        assert store.take_token("slow", 0.001) > 0
        with ThreadPoolExecutor(8) as pool:
            waits = list(pool.map(lambda _: store.take_token("same", 0.001), range(40)))
        assert waits.count(0) == 1
        assert [store.take_token("burst", 50) for _ in range(50)] == [0] * 50


COPY = "COPY rollup_hour (series_id) FROM STDIN"
LOCK = f"SELECT pg_advisory_xact_lock({_WRITER_LOCK})"


@pytest.mark.parametrize("copying", [False, True], ids=["between statements", "in a COPY"])
def test_a_writer_that_says_nothing_any_more_is_ended(postgres_url: str, copying: bool) -> None:
    """If a stopped process holds the lock of writers, others write again after a while."""
    with Store.open(postgres_url, busy_timeout_s=0.5) as store:
        stalled = psycopg.connect(postgres_url)
        stalled.execute(LOCK)
        if copying:
            stalled.pgconn.exec_(COPY.encode())
        deadline = time.monotonic() + 200
        while True:
            try:
                write(store, range(1, 2))
                break
            except StoreUnavailableError:
                assert time.monotonic() < deadline
        with pytest.raises(psycopg.Error):
            stalled.execute("SELECT 1")
        stalled.close()


def test_a_writer_that_works_is_not_ended(postgres_url: str) -> None:
    """However long its statement takes: others are told to come again."""
    with Store.open(postgres_url, busy_timeout_s=0.2) as store:
        with psycopg.connect(postgres_url) as working:
            working.execute(LOCK)
            done = threading.Thread(target=working.execute, args=("SELECT pg_sleep(2)",))
            done.start()
            for _ in range(3):
                with pytest.raises(StoreUnavailableError, match="lock"):
                    write(store, range(1, 2))
            done.join()
            working.execute("SELECT 1")
        write(store, range(1, 2))


def test_collectors_that_start_at_once_on_an_empty_database_all_serve(postgres_url: str) -> None:
    """One of them makes the schema, and the others wait for it."""
    options = ("serve", "--database", postgres_url, "--port", "0", "--no-grpc")
    environment = os.environ | {"DRAFTGATE_BUSY_TIMEOUT_S": "60"}
    processes = [
        subprocess.Popen(command_of(*options), stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert "OTLP over HTTP at" in process.stdout.readline()
    finally:
        for process in processes:
            process.kill()
            process.communicate()
