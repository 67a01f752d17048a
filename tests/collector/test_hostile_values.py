"""Values that no sender should send, on both databases: none is lost, and none harms another."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from collector_in_process import http_of
from made_generations import generation_of, span_of
from otlp_bodies import PROTOBUF, export_request, received
from postgres_cluster import Postgres, PostgresError, find_binaries, server

from collector.contract import Span, encode
from collector.ingest.preparation import prepare
from collector.otlp.body import Encoding
from collector.otlp.traces import decode_traces
from collector.settings import Settings
from collector.store import Batch, Store, payload
from collector.store.postgres import partitions

LONG = secrets.token_hex(5000)  # random, for PostgreSQL compresses what it puts into an index


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """Start one PostgreSQL cluster for these tests; skip if PostgreSQL is not installed."""
    try:
        find_binaries()
    except PostgresError as exc:
        pytest.skip(str(exc))
    with server(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def postgres_url(cluster: Postgres) -> str:
    """Name an empty database of the cluster."""
    name = f"test_{secrets.token_hex(4)}"
    engine = sa.create_engine(
        sa.make_url(cluster.url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return cluster.url.rpartition("/")[0] + f"/{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def either_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name an empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'draftgate.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@contextmanager
def opened(url: str, **options: float) -> Iterator[Store]:
    store = Store.open(url, **options)
    try:
        yield store
    finally:
        store.close()


def batch_of(*spans: Span) -> Batch:
    return Batch(spans=prepare(received(spans)))


def body_of(*spans: Span) -> bytes:
    body: bytes = export_request(spans).SerializeToString()
    return body


def test_nul_in_any_text_is_stored(either_url: str) -> None:
    """PostgreSQL's text has no character 0; a span that has it everywhere is stored there too."""
    generation = generation_of(
        1,
        **dict.fromkeys(("route", "request_model", "response_id", "service_name"), "a\0b"),
        dims={"a\0": "b\0"},
        stop_sequences=("\0",),
        error_type="\0",
    )
    named = replace(encode(generation), name="\0", scope_name="\0", status_message="\0")
    score = {
        "trace_id": generation.trace_id,
        "span_id": generation.span_id,
        "metric": "m",
        "evaluator": "e",
        "version": "1",
        "value": 0.5,
        "label": "\0",
        "explanation": "\0",
    }
    with http_of(Settings(database_url=either_url)) as http:
        stored = http.post("/v1/traces", content=body_of(named), headers=PROTOBUF)
        scored = http.post("/api/v1/scores", json=[score])
        listed = http.get("/api/v1/scores", params={"rollout": "k4"})
        routes = ("generations", "pairs", "scores")
        unknown = [http.get(f"/api/v1/{route}", params={"rollout": "\0"}) for route in routes]
    assert (stored.status_code, stored.content) == (200, b"")
    assert scored.status_code == 204
    assert [one["value"] for one in listed.json()["scores"]] == [0.5]
    assert [answer.status_code for answer in unknown] == [404, 404, 404]


@pytest.mark.parametrize("name", ["rollout", "cohort", "prompt_id"])
@pytest.mark.parametrize("value", [LONG, "a\0b"])
def test_a_name_that_no_index_can_hold_is_flagged_and_harms_no_other(
    either_url: str, name: str, value: str
) -> None:
    """Stored without that name, in one transaction with a span beside it."""
    with opened(either_url) as store:
        written = store.write(
            batch_of(encode(generation_of(1, **{name: value})), encode(generation_of(2)))
        )
        with store.read() as connection:
            table = sa.text(f"SELECT {name}, quality FROM generation ORDER BY span_id")  # noqa: S608
            bad, good = connection.execute(table).all()
        assert written == 2
        assert bad == (None, f'["type:draftgate.{name.replace("_", ".")}"]')
        assert good[0] is not None
        assert good[1] is None


@pytest.mark.parametrize("name", ["metric", "evaluator", "version"])
@pytest.mark.parametrize("value", [LONG, "a\0b"])
def test_a_score_whose_name_no_index_can_hold_is_refused(
    http: httpx.Client, name: str, value: str
) -> None:
    """The sender is told, and does not send it again and again."""
    score = {"trace_id": "a" * 32, "span_id": "b" * 16, "value": 0.5}
    score |= {"metric": "m", "evaluator": "e", "version": "1", name: value}
    answer = http.post("/api/v1/scores", json=[score])
    assert answer.status_code == 400
    detail = f"[0].{name}: wanted up to 255 characters, none of them a control character"
    assert answer.json()["detail"] == detail


@pytest.mark.parametrize("key", ["value", "latency_s"])
def test_an_integer_that_no_float_can_hold_is_refused(http: httpx.Client, key: str) -> None:
    """JSON has such integers."""
    score: dict[str, object] = {"trace_id": "a" * 32, "span_id": "b" * 16, "value": 0.5}
    score |= {"metric": "m", "evaluator": "e", "version": "1", key: "huge"}
    answer = http.post(
        "/api/v1/scores",
        content=f"[{json.dumps(score)}]".replace('"huge"', "1" + 400 * "0"),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 400
    assert f"[0].{key}: wanted a finite number, got 1000" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("span", "detail"),
    [
        ({"start": 3, "end": 2}, "[0].spans[0]: a span runs from a start to an end, got 3 to 2"),
        (
            {"start": 0, "end": 2**31},
            "[0].spans[0]: a span runs from a start to an end, got 0 to 2147483648",
        ),
        (
            {"start": 0, "end": 1, "support": 1.5},
            "[0].spans[0]: a span's support lies in [0, 1], got 1.5",
        ),
        ({"start": 0}, "[0].spans[0].end: missing key of ScoredSpan"),
    ],
)
def test_an_impossible_span_of_a_score_is_refused(
    http: httpx.Client, span: dict[str, object], detail: str
) -> None:
    """What no part of an answer can be is refused with its path."""
    score = {"trace_id": "a" * 32, "span_id": "b" * 16, "value": 0.5, "spans": [span]}
    answer = http.post(
        "/api/v1/scores", json=[score | {"metric": "m", "evaluator": "e", "version": "1"}]
    )
    assert (answer.status_code, answer.json()["detail"]) == (400, detail)


def test_an_annotation_with_a_name_that_is_too_long_is_no_score(
    postgres_url: str,
) -> None:
    """The span that carries it is stored all the same."""
    sent = {
        "openinference.span.kind": "CHAIN",
        "annotations.0.annotation.name": LONG,
        "annotations.0.annotation.score": 0.5,
    }
    (rows,) = prepare(received([span_of(attributes=sent)]))
    with opened(postgres_url) as store:
        written = store.write(Batch(spans=(rows,), scores=rows.scores))
        assert (written, rows.scores) == (1, ())


def test_what_can_never_be_stored_is_no_reason_to_wait(postgres_url: str) -> None:
    """An index entry that is too large is the request's own fault, not the database's state."""
    with (
        opened(postgres_url) as store,
        pytest.raises(sa.exc.OperationalError),
        store.transaction() as connection,
    ):
        connection.execute(sa.text("INSERT INTO pair_count VALUES (:name, 1)"), {"name": LONG})


def test_of_an_attribute_sent_twice_the_last_counts() -> None:
    """In the row, in its flags, and in the stored span."""
    request = export_request([encode(generation_of(1, cohort="first", route="first"))])
    (span,) = request.resource_spans[0].scope_spans[0].spans
    span.attributes.add(key="draftgate.cohort").value.int_value = 3
    span.attributes.add(key="draftgate.route").value.string_value = "second"
    (rows,) = prepare(decode_traces(request.SerializeToString(), Encoding.PROTOBUF).received)
    assert rows.generation is not None
    assert "cohort" not in rows.generation
    assert rows.generation["route"] == "second"
    assert rows.generation["quality"] == '["type:draftgate.cohort"]'
    assert payload.unpack(rows.span[-1]).attributes["draftgate.cohort"] == 3


def test_spans_sent_again_are_told_apart_without_a_query_for_each(either_url: str) -> None:
    """A sender that comes again with its whole batch holds the writer up no longer than before."""
    with opened(either_url) as store:
        spans = [encode(generation_of(number)) for number in range(1, 1001)]
        store.write(batch_of(*spans[:900]))
        statements: list[str] = []
        sa.event.listen(
            store.engine, "before_cursor_execute", lambda *given: statements.append(given[2])
        )
        assert store.write(batch_of(*spans)) == 100
        assert len(statements) < 30


def test_a_new_day_waits_for_no_reader(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first write of a day makes its partitions while a long export is under way."""
    with opened(postgres_url, busy_timeout_s=0.5) as store:
        store.write(batch_of(encode(generation_of(1))))
        now_s = time.time()
        with store.read() as reader:
            assert reader.scalar(sa.text("SELECT count(*) FROM generation")) == 1
            monkeypatch.setattr(
                "collector.store.relational.writer.time.time", lambda: now_s + 86_400
            )
            assert store.write(batch_of(encode(generation_of(2)))) == 1
        with store.read() as connection:
            assert len(list(partitions.days(connection, "span"))) == 2
