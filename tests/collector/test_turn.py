"""The turn of decoding and writing: who takes it, who never waits for it, and that it comes back.

A thread's end is waited for as long as `_LONG_S`, which only a failure takes.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterator

import pytest
from anyio import CapacityLimiter
from made_generations import generation_of, score_of
from otlp_bodies import export_request, received
from postgres_cluster import Postgres

from collector.content import DROP
from collector.contract import Generation, encode
from collector.errors import OtlpError
from collector.ingest.counters import Counters
from collector.ingest.export import Exporter, Sender
from collector.ingest.preparation import prepare
from collector.ingest.queue import Ingest
from collector.ingest.signals import TRACES
from collector.otlp.body import Encoding
from collector.store import Batch, Store
from collector.store.turn import InterpreterTurn
from collector.store.upkeep import sizes

_LONG_S = 30.0
NOBODY = Sender(judges=False, key_id=None)


@pytest.fixture
def collecting(database_url: str) -> Iterator[Ingest]:
    """Write to an SQLite file, for whose lock and whose turn everybody waits for long."""
    with Store.open(database_url, busy_timeout_s=2 * _LONG_S) as store:
        ingest = Ingest(store, max_queue_bytes=1_000_000)
        ingest.turn = InterpreterTurn(patience_s=2 * _LONG_S)
        ingest.start()
        yield ingest
        ingest.stop()


def test_one_holds_it_at_a_time() -> None:
    """A second thread begins once the first is done, whether or not that failed."""
    turn, said = InterpreterTurn(patience_s=2 * _LONG_S), list[str]()

    def second() -> None:
        with turn.taken():
            said.append("second")

    thread = threading.Thread(target=second)

    def first() -> None:
        with turn.taken():
            thread.start()
            thread.join(0.2)
            said.append("first")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        first()
    thread.join(_LONG_S)
    assert said == ["first", "second"]


def test_patience_ends() -> None:
    """One that keeps the turn for ever keeps nobody, and what was not taken is not given back."""
    turn = InterpreterTurn(patience_s=0.01)
    with turn.taken():
        with turn.taken():
            pass
        assert _can_be_taken(turn)


def test_writing_a_file_waits_for_it(collecting: Ingest) -> None:
    """A batch submitted while the turn is taken is written after the turn ends."""
    with collecting.turn.taken():
        written = collecting.submit(_batch_of(generation_of(1)))
        with pytest.raises(TimeoutError):
            written.result(0.2)
    written.result(_LONG_S)


def test_a_writer_that_waits_for_a_lock_does_not_hold_it(
    collecting: Ingest, database_url: str
) -> None:
    """While another process holds the database's lock, decoding goes on."""
    with contextlib.closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as other:
        other.execute("BEGIN IMMEDIATE")
        written = collecting.submit(_batch_of(generation_of(1)))
        assert _can_be_taken(collecting.turn)
        assert not written.done()
        other.rollback()
    written.result(_LONG_S)


def test_readers_never_wait_for_it(collecting: Ingest, database_url: str) -> None:
    """Whoever has the turn, the database can be read, and found to be well."""
    with collecting.turn.taken(), Store.open(database_url) as store:
        store.check()
        with store.read() as connection:
            assert sizes.row_counts(connection)["span"] == 0


def test_it_comes_back_from_a_batch_that_fails(collecting: Ingest) -> None:
    """A batch that cannot be written costs its own request alone."""
    impossible = score_of(generation_of(), version="\ud800")
    with pytest.raises(UnicodeEncodeError):
        collecting.submit(Batch(scores=(impossible,))).result(_LONG_S)
    assert _can_be_taken(collecting.turn)


def test_it_comes_back_from_a_body_that_cannot_be_decoded(collecting: Ingest) -> None:
    """A garbled body costs its own request alone."""

    async def export(body: bytes) -> None:
        exporter = Exporter(collecting, CapacityLimiter(1), Counters(), DROP)
        with collecting.admission.room(len(body)) as room:
            await exporter.export(TRACES, body, Encoding.PROTOBUF, room, sender=NOBODY)

    with pytest.raises(OtlpError):
        asyncio.run(export(b"\xff"))
    asyncio.run(export(export_request([encode(generation_of(1))]).SerializeToString()))
    assert _can_be_taken(collecting.turn)


def test_writing_to_a_server_does_not_take_it(postgres: Postgres) -> None:
    """PostgreSQL writes in its own processes, for which nothing here has to wait."""
    with Store.open(postgres.url) as store:
        turn = InterpreterTurn(patience_s=2 * _LONG_S)
        with turn.taken():
            writing = threading.Thread(target=store.write, args=(_batch_of(generation_of(1)), turn))
            writing.start()
            writing.join(_LONG_S)
            assert not writing.is_alive()


def _batch_of(generation: Generation) -> Batch:
    return Batch(spans=prepare(received([encode(generation)])))


def _can_be_taken(turn: InterpreterTurn) -> bool:
    """Say whether another thread gets the turn; that thread's patience is longer than ours."""
    taken = threading.Event()

    def take() -> None:
        with turn.taken():
            taken.set()

    threading.Thread(target=take, daemon=True).start()
    return taken.wait(_LONG_S)
