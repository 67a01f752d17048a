"""The app's state for routes: settings, store, ingest and others, created in its lifespan."""

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypeVar, cast

from anyio import CapacityLimiter
from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from collector.access import Authority
from collector.api.rollout_metrics import RolloutMetrics
from collector.api.switch_watch import SwitchWatch
from collector.content import ContentPolicy
from collector.ingest.counters import Counters
from collector.ingest.export import Exporter
from collector.ingest.queue import Ingest
from collector.settings import Settings
from collector.store import Store
from collector.store.reader import StoreConnection

R = TypeVar("R")


class State(NamedTuple):
    """The parts of a running collector."""

    settings: Settings
    store: Store
    ingest: Ingest
    inflaters: CapacityLimiter
    """Limits the threads that decompress: each may hold a whole body outside the queue."""
    exporter: Exporter
    content: ContentPolicy
    authority: Authority
    counters: Counters
    switches: SwitchWatch
    rollout_metrics: RolloutMetrics

    async def read(self, read: Callable[[StoreConnection], R]) -> R:
        """Return what a function reads from the store, in a thread."""

        def reading() -> R:
            with self.store.read() as connection:
                return read(connection)

        return await run_in_threadpool(reading)

    async def transact(self, write: Callable[[StoreConnection], R]) -> R:
        """Return what a function returns after its transaction, in a thread."""

        def writing() -> R:
            with self.store.transaction() as connection:
                return write(connection)

        return await run_in_threadpool(writing)


async def state_of(request: Request) -> State:
    """Return the running collector's parts; async only because FastAPI runs others in a thread."""
    return cast("State", request.app.state.collector)


Collector = Annotated[State, Depends(state_of)]
