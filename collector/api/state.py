"""The app's state for routes: settings, store, ingest and others, created in its lifespan."""

from typing import Annotated, NamedTuple, cast

from anyio import CapacityLimiter
from fastapi import Depends, Request

from collector.access import Authority
from collector.api.rollout_metrics import RolloutMetrics
from collector.api.switch_watch import SwitchWatch
from collector.content import ContentPolicy
from collector.ingest.counters import Counters
from collector.ingest.export import Exporter
from collector.ingest.queue import Ingest
from collector.settings import Settings
from collector.store import Store


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


async def state_of(request: Request) -> State:
    """Return the running collector's parts; async only because FastAPI runs others in a thread."""
    return cast("State", request.app.state.collector)


Collector = Annotated[State, Depends(state_of)]
