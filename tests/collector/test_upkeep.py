"""The collector's upkeep, step by step, and as a thread beside senders."""

import logging
import time
from collections.abc import Iterable

import pytest
from collector_in_process import http_of
from made_generations import engine_span_of, generation_of, pair_side, span_of
from otlp_bodies import body_of, received
from sqlite_database import locked
from waiting import until

from collector.contract import Span, encode
from collector.ingest.preparation import prepare
from collector.serving.upkeep import Upkeep
from collector.settings import Settings
from collector.store import Batch, Keep, Store, engine_spans, pair_counts
from collector.store.upkeep import rollup_check, sizes

NOW = 1_790_000_000.0


class Clock:
    """A time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def write(store: Store, numbers: Iterable[int]) -> None:
    for n in numbers:
        store.write(Batch(spans=prepare(received([encode(pair_side(n))]))))


def test_deltas_are_folded_after_seconds_and_pairs_counted(
    any_database_url: str, clock: Clock
) -> None:
    """Nothing is done at once; then one thing a step, until nothing is left."""
    with Store.open(any_database_url) as store:
        upkeep = Upkeep(store, Keep(), clock=clock)
        write(store, range(2, 12))
        assert upkeep.step() == 0
        clock.now += 5
        assert upkeep.step() == 10
        assert upkeep.step() == 10
        assert upkeep.step() == 0
        with store.read() as connection:
            assert connection.reader.pending_deltas() == 0
            assert not pair_counts.any_uncounted(connection)
            assert list(rollup_check.differences(connection)) == []
            assert pair_counts.counts(connection) == {"k4": 5}


def test_an_engines_span_whose_client_sent_none_becomes_a_generation(
    any_database_url: str, clock: Clock
) -> None:
    """After ten minutes, once, also in rollups and pairs, though its id is below counted ones."""
    clock.now = time.time()
    with Store.open(any_database_url) as store:
        upkeep = Upkeep(store, Keep(), clock=clock)
        store.write(Batch(spans=prepare(received([engine_span(1), engine_span(2)]))))
        with store.read() as connection:
            assert sizes.row_counts(connection)["engine_span"] == 2
        clock.now += 60
        while upkeep.step():
            pass
        with store.read() as connection:
            assert sizes.row_counts(connection)["generation"] == 0
        clock.now += engine_spans.PATIENCE_S
        while upkeep.step():
            pass
        with store.read() as connection:
            rows = sizes.row_counts(connection)
            assert (rows["generation"], rows["engine_span"]) == (2, 0)
            assert list(rollup_check.differences(connection)) == []


def engine_span(number: int) -> Span:
    return engine_span_of(
        span_of(number),
        scope_name="vllm",
        attributes={
            "gen_ai.request.id": f"r{number}",
            "gen_ai.usage.completion_tokens": 3,
            "gen_ai.latency.time_to_first_token": 0.1,
            "gen_ai.latency.time_in_queue": 0.01,
        },
        resource={"service.name": "vllm"},
    )


def test_a_late_generation_completes_a_pair_that_was_passed(any_database_url: str) -> None:
    """A generation stored below the counted ids is counted when it is stored."""
    with Store.open(any_database_url) as store:
        write(store, range(2, 6))
        with store.transaction() as connection:
            connection.exec_driver_sql(
                "DELETE FROM generation WHERE id = (SELECT min(id) FROM generation)"
            )
        store.count_pairs(at_most=100)
        with store.read() as connection:
            assert pair_counts.counts(connection) == {"k4": 1}
            first = connection.exec_driver_sql("SELECT min(id) FROM generation").scalar_one() - 1
        late = {"id": first, "rollout": "k4", "prompt_id": "p1", "repeat": 0, "arm": "baseline"}
        with store.transaction() as connection:
            pair_counts.add_late(connection, [late, late | {"prompt_id": "p9"}])
        with store.read() as connection:
            assert pair_counts.counts(connection) == {"k4": 2}


def test_retention_runs_at_the_start_and_every_hour(any_database_url: str, clock: Clock) -> None:
    """A span that is old enough goes with the hour after."""
    clock.now = time.time()
    with Store.open(any_database_url) as store:
        write(store, [1])
        upkeep = Upkeep(store, Keep(spans_s=86_400), clock=clock)
        clock.now += 10
        while upkeep.step():
            pass
        clock.now += 2 * 86_400
        while upkeep.step():
            pass
        with store.read() as connection:
            rows = sizes.row_counts(connection)
        assert (rows["span"], rows["generation"], rows["rollup_hour"]) == (0, 0, 1)


def test_a_locked_database_is_said_once_and_tried_again(
    database_url: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """A line when it begins to fail, a line when it works again, and the work is done then."""
    caplog.set_level(logging.INFO, "collector.serving.upkeep")
    with Store.open(database_url, busy_timeout_s=0.05) as store:
        write(store, [1, 2])
        upkeep = Upkeep(store, Keep(), clock=clock)
        clock.now += 10
        with locked(database_url):
            assert [upkeep.step(), upkeep.step()] == [0, 0]
        clock.now += 10
        assert upkeep.step() == 2
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in said] == [
        "upkeep fails and is tried again",
        "upkeep works again",
    ]


@pytest.mark.slow
def test_a_running_collector_folds_by_itself(database_url: str) -> None:
    """Posted over HTTP, read as before, and after seconds nothing waits to be folded."""
    headers = {"Content-Type": "application/x-protobuf"}
    with http_of(Settings(database_url=database_url)) as http:
        body = body_of([encode(generation_of(1))])
        assert http.post("/v1/traces", content=body, headers=headers).status_code == 200
        before = http.get("/api/v1/rollouts/k4/summary").json()
        with Store.open(database_url) as store:
            until(lambda: pending(store) == 0)
        assert http.get("/api/v1/rollouts/k4/summary").json() == before


def pending(store: Store) -> int:
    with store.read() as connection:
        return connection.reader.pending_deltas()
