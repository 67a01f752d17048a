"""`GET /metrics`: the collector's and the rollouts' metrics in Prometheus's text format."""

from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as MetricSource

from collector.api.problems import responses
from collector.api.routing import DescribedRoute
from collector.api.state import Collector, State

router = APIRouter(tags=["health"], route_class=DescribedRoute)


class _Metrics(MetricSource):
    """The counters, and gauges that are measured at scrape time."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        yield from self._state.counters.collect()
        yield GaugeMetricFamily(
            "draftgate_ingest_queue_bytes",
            "Bytes of bodies being decoded or waiting for the database.",
            value=self._state.ingest.admission.held_bytes,
        )
        yield GaugeMetricFamily(
            "draftgate_store_size_bytes",
            "Size of the database's files.",
            value=self._state.store.size_bytes(),
        )
        yield from self._state.rollout_metrics.collect()


def registry_of(state: State) -> CollectorRegistry:
    """Return a registry of only this collector: several may run in one process."""
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
    """Return the collector's metrics and the newest rollouts' state in Prometheus's text format."""
    # A new registry per scrape is cheap: it only refers to the sources.
    return Response(generate_latest(registry_of(collector)), media_type=CONTENT_TYPE_LATEST)
