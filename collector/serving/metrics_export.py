"""Sends the metrics of rollouts to an OTLP endpoint, by the SDK's own exporter, in a thread."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric as Family

from collector.errors import StoreUnavailableError

_SCOPE: Final = InstrumentationScope("draftgate")
_STOP_S: Final = 1.0
"""How long a stop waits for a send; a receiver that hangs is left to itself."""
_log = logging.getLogger(__name__)


class MetricsExport:
    """A thread that sends gauges every `every_s`; nothing else waits for the receiver.

    Headers, certificate, compression and timeout are those of the environment
    (`OTEL_EXPORTER_OTLP_METRICS_HEADERS` and so on).
    """

    def __init__(
        self, endpoint: str, collect: Callable[[], Iterable[Family]], *, every_s: float
    ) -> None:
        """Send to a URL such as `http://otel:4318/v1/metrics`."""
        self._endpoint = endpoint
        self._collect = collect
        self._every_s = every_s
        instance = {"service.name": "draftgate", "service.instance.id": secrets.token_hex(8)}
        self._resource = Resource.create(instance)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="draftgate-metrics", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, unless it waits for the receiver: then it ends with the process."""
        self._stopping.set()
        self._thread.join(_STOP_S)

    def _run(self) -> None:
        exporter = OTLPMetricExporter(endpoint=self._endpoint, session=_session())
        while not self._stopping.wait(self._every_s):
            try:
                exporter.export(self._data())
            except StoreUnavailableError as exc:
                _log.warning("metrics wait for the database: %s", exc)
            except Exception:
                # A bug with one set of metrics must not stop the next.
                _log.exception("metrics were not sent")
        exporter.shutdown()

    def _data(self) -> MetricsData:
        now = time.time_ns()
        metrics = [_gauge(one, now) for one in self._collect() if one.samples]
        scope = ScopeMetrics(scope=_SCOPE, metrics=metrics, schema_url="")
        return MetricsData([ResourceMetrics(self._resource, [scope], schema_url="")])


def _session() -> requests.Session:
    """Return a session that reads no body, which a receiver may send without end."""
    session = requests.Session()
    session.stream = True
    session.hooks["response"].append(lambda answer, *_, **__: answer.close())
    return session


def _gauge(family: Family, now_unix_ns: int) -> Metric:
    points = [
        NumberDataPoint(
            attributes=dict(sample.labels),
            start_time_unix_nano=now_unix_ns,
            time_unix_nano=now_unix_ns,
            value=sample.value,
        )
        for sample in family.samples
    ]
    return Metric(family.name, family.documentation, unit="", data=Gauge(points))
