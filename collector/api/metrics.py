"""`GET /metrics`: what the collector counts, and where rollouts stand, as Prometheus reads it."""

from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as MetricSource

from collector.api.problems import responses
from collector.api.state import Collector, State

router = APIRouter(tags=["health"])


class _Metrics(MetricSource):
    """The counters, and what is measured only when somebody asks."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        yield from self._state.counters.collect()
        yield GaugeMetricFamily(
            "draftgate_ingest_queue_bytes",
            "Bytes of bodies that are decoded or wait for the database.",
            value=self._state.ingest.admission.held_bytes,
        )
        yield GaugeMetricFamily(
            "draftgate_store_size_bytes",
            "Size of the database's files.",
            value=self._state.store.size_bytes(),
        )
        yield from self._state.rollout_metrics.collect()


def registry_of(state: State) -> CollectorRegistry:
    """Return a registry of this collector alone: several may run in one process."""
    registry = CollectorRegistry()
    registry.register(_Metrics(state))
    return registry


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **responses(401, 403, 429, 503),
    },
)
def metrics(collector: Collector) -> Response:
    """Give the counters, and where the newest rollouts stand, in Prometheus's text format."""
    # Made anew for each scrape: it holds nothing but the way to the counters.
    return Response(generate_latest(registry_of(collector)), media_type=CONTENT_TYPE_LATEST)
