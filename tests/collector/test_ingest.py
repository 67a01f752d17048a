"""The writer thread: pending batches are written together, and a failure affects only its own."""

import asyncio

import pytest
from made_generations import generation_of, score_of
from otlp_bodies import received

from collector.contract import Generation, encode
from collector.errors import StoreUnavailableError
from collector.ingest.preparation import prepare
from collector.ingest.queue import Ingest
from collector.store import Batch, Store
from collector.store.upkeep import sizes


def batch_of(generation: Generation) -> Batch:
    return Batch(spans=prepare(received([encode(generation)])))


def spans_in(store: Store) -> int:
    with store.read() as connection:
        return sizes.row_counts(connection)["span"]


def test_a_request_that_breaks_the_writer_fails_alone(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests of one transaction do not share the fault of one, and the thread goes on."""
    impossible = score_of(generation_of(), version="\ud800")

    async def scenario(ingest: Ingest) -> list[object]:
        pending = asyncio.gather(
            ingest.write(batch_of(generation_of(1))),
            ingest.write(Batch(scores=(impossible,))),
            ingest.write(batch_of(generation_of(2))),
            return_exceptions=True,
        )
        await asyncio.sleep(0)  # all three wait before the thread starts
        ingest.start()
        results: list[object] = [*await pending, await ingest.write(batch_of(generation_of(3)))]
        await asyncio.to_thread(ingest.stop)
        return results

    with Store.open(database_url) as store:
        results = asyncio.run(scenario(Ingest(store, max_queue_bytes=1)))
        assert [type(result) for result in results] == [
            type(None),
            UnicodeEncodeError,
            type(None),
            type(None),
        ]
        assert spans_in(store) == 3
    assert [record.message for record in caplog.records] == ["a request could not be stored"]


def test_stopping_writes_what_is_pending_and_takes_no_more(database_url: str) -> None:
    """Everything accepted before the stop is durable; what comes after is told to come again."""

    async def scenario(ingest: Ingest) -> None:
        pending = [
            asyncio.create_task(ingest.write(batch_of(generation_of(n)))) for n in range(1, 50)
        ]
        await asyncio.sleep(0)
        ingest.start()
        await asyncio.to_thread(ingest.stop)
        await asyncio.gather(*pending)
        with pytest.raises(StoreUnavailableError, match="stopping; send this again later"):
            await ingest.write(batch_of(generation_of(50)))

    with Store.open(database_url) as store:
        asyncio.run(scenario(Ingest(store, max_queue_bytes=1)))
        assert spans_in(store) == 49


def test_a_waiter_that_went_away_is_not_written(database_url: str) -> None:
    """A request that was given up before its turn leaves nothing, and the others get theirs."""

    async def scenario(ingest: Ingest) -> None:
        gone = asyncio.create_task(ingest.write(batch_of(generation_of(1))))
        stays = asyncio.create_task(ingest.write(batch_of(generation_of(2))))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        ingest.start()
        await stays
        await asyncio.to_thread(ingest.stop)
        assert gone.cancelled()

    with Store.open(database_url) as store:
        asyncio.run(scenario(Ingest(store, max_queue_bytes=1)))
        assert spans_in(store) == 1
