"""Work that is done behind an answer."""

import asyncio
from collections.abc import Callable

import pytest
import scripted_server as server
from running_router import STREAMED, collecting, routing
from scripted_server import Route

from engine_adapter.router.deferred_work import DeferredWork


def test_work_is_done_in_order_behind_and_at_the_latest_at_the_end() -> None:
    """Nothing of it in the call that adds it; a piece that fails takes no other with it."""
    done: list[int] = []
    failures: list[object] = []

    def piece(number: int) -> Callable[[], None]:
        def work() -> None:
            if number == 3:
                raise RuntimeError("the third")
            done.append(number)

        return work

    async def run() -> None:
        loop = asyncio.get_running_loop()
        last = asyncio.Event()
        loop.set_exception_handler(lambda _loop, context: failures.append(context["exception"]))
        afterwards = DeferredWork()
        for number in range(200):
            afterwards.add(piece(number))
        afterwards.add(last.set)
        assert done == []
        await last.wait()
        afterwards.add(piece(200))
        afterwards.close()

    asyncio.run(run())
    assert done == [number for number in range(201) if number != 3]
    assert [str(failure) for failure in failures] == ["the third"]


@pytest.mark.parametrize("requests", [1, 20])
def test_a_router_that_stops_records_what_it_answered(requests: int) -> None:
    """The last answer's span is not lost, however soon after it the router stops."""
    with (
        server.running(Route(server.chat(["a"]))) as upstream,
        collecting() as (collector, collected),
    ):
        with routing(upstream.url, upstream.url, collector_url=collector) as router:
            for _ in range(requests):
                router.ask(STREAMED)
        # An export that the stop cuts off is sent again.
        assert len({span["span"] for span in collected.wait_for(requests)}) == requests


def test_work_that_adds_work_goes_on_to_its_end() -> None:
    """Each part in a turn of its own, and nothing is done twice."""

    async def play() -> list[int]:
        deferred, done = DeferredWork(), []

        def part(number: int) -> None:
            done.append(number)
            if number:
                deferred.add(lambda: part(number - 1))

        deferred.add(lambda: part(3))
        failures: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: failures.append(said))
        await asyncio.sleep(0.2)
        assert failures == []
        return done

    assert asyncio.run(play()) == [3, 2, 1, 0]
