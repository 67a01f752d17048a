"""Samples of the engines' metrics during a run, sent as OTLP metrics.

Every few seconds: KV cache usage, running and waiting requests, and the GPU metrics of a DCGM
exporter and of this machine's NVML. A failed scrape is counted and does not end the run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ScopeMetrics
from prometheus_client.parser import text_string_to_metric_families

from collector.contract import Arm
from collector.contract import attributes as a
from engine_adapter.collector_access import CollectorAccess
from engine_adapter.engines.gpu_samples import METRICS as GPU_METRICS
from engine_adapter.engines.gpu_samples import GpuReader, GpuReading
from engine_adapter.errors import GenerationError, TelemetryError
from engine_adapter.transport import HttpClient, Timeouts

EVERY_S = 5.0
_T = TypeVar("_T")
_GAUGES = frozenset(
    (
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "sglang:num_running_reqs",
        "sglang:num_queue_reqs",
        "sglang:token_usage",
        "llamacpp:requests_processing",
        "llamacpp:requests_deferred",
        "tgi_batch_current_size",
        "tgi_queue_size",
        "DCGM_FI_DEV_FB_FREE",
        *(metric.name for metric in GPU_METRICS),
    )
)


class MetricsPage(NamedTuple):
    """One Prometheus metrics page to scrape."""

    arm: Arm
    url: str
    service: str


class SampleTally(NamedTuple):
    """Counts of stored samples and of failed scrapes."""

    sent: int
    failed: int
    """Scrapes that got no answer, or that the collector did not store."""


class EngineSampler:
    """Scrapes and sends samples in the background; an asynchronous context manager."""

    def __init__(
        self,
        sources: Sequence[MetricsPage],
        *,
        rollout: str,
        collector_url: str,
        every_s: float = EVERY_S,
        gpus: GpuReader,
    ) -> None:
        self.tally = SampleTally(0, 0)
        self._sources = sources
        self._rollout = rollout
        self._url = f"{collector_url.rstrip('/')}/v1/metrics"
        self._every_s = every_s
        self._gpus = gpus
        self._gpu_thread = ThreadPoolExecutor(1, "gpus")  # a slow driver must not delay requests
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "EngineSampler":
        await self._on_gpu_thread(self._gpus.open)
        if self._sources or self._gpus.gpus:
            self._task = asyncio.create_task(self._sample_for_ever())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._on_gpu_thread(self._gpus.close)  # one thread: after a running `read`
        self._gpu_thread.shutdown()

    async def _sample_for_ever(self) -> None:
        timeouts = Timeouts(connect_s=2, first_byte_s=2, total_s=5)
        access = CollectorAccess.from_environment()
        try:
            async with (
                aclosing(HttpClient("", timeouts=timeouts)) as client,
                httpx.AsyncClient(
                    verify=access.tls(), timeout=5, headers=access.headers
                ) as collector,
            ):
                while True:
                    for source in self._sources:
                        self._count(await self._send(self._scraped(source, client), collector))
                    if self._gpus.gpus:
                        self._count(await self._send(self._read(), collector))
                    await asyncio.sleep(self._every_s)
        except TelemetryError:  # the span sender raises the same error
            return

    async def _scraped(
        self, source: MetricsPage, client: HttpClient
    ) -> ExportMetricsServiceRequest:
        page = await client.get(source.url)
        return exported(page.body.decode(), source, self._rollout, time.time_ns())

    async def _read(self) -> ExportMetricsServiceRequest:
        readings = await self._on_gpu_thread(self._gpus.read)
        return exported_gpus(readings, self._rollout, time.time_ns())

    async def _on_gpu_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._gpu_thread, call)

    async def _send(
        self, sampled: Awaitable[ExportMetricsServiceRequest], collector: httpx.AsyncClient
    ) -> int | None:
        """Send one scrape; return how many samples were stored, `None` if it failed."""
        try:
            export = await sampled
            points = sum(
                len(scope.metrics)
                for part in export.resource_metrics
                for scope in part.scope_metrics
            )
            if points:
                answer = await collector.post(
                    self._url,
                    content=export.SerializeToString(),
                    headers={"content-type": "application/x-protobuf"},
                )
                answer.raise_for_status()
        except (GenerationError, httpx.HTTPError, ValueError):
            return None
        return points

    def _count(self, sent: int | None) -> None:
        self.tally = SampleTally(self.tally.sent + (sent or 0), self.tally.failed + (sent is None))


def exported(
    page: str, source: MetricsPage, rollout: str, time_unix_ns: int
) -> ExportMetricsServiceRequest:
    """Return the page's load gauges as an OTLP export; raises `ValueError` if it cannot be read."""
    export = ExportMetricsServiceRequest()
    scope = _scope_of(export, source.service, urlsplit(source.url).netloc)
    labels = {a.DRAFTGATE_ROLLOUT: rollout, a.DRAFTGATE_ARM: source.arm.value}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name in _GAUGES:
                _set(
                    scope.metrics.add(name=sample.name),
                    sample.value,
                    sample.labels | labels,
                    time_unix_ns,
                )
    return export


def exported_gpus(
    readings: Sequence[GpuReading], rollout: str, time_unix_ns: int
) -> ExportMetricsServiceRequest:
    """Return an OTLP export with one instance per GPU.

    It names no arm, since both arms may use the GPU.
    """
    export = ExportMetricsServiceRequest()
    for gpu, of_gpu in groupby(readings, attrgetter("gpu")):
        scope = _scope_of(export, "nvml", gpu.instance)
        labels = gpu.labels | {a.DRAFTGATE_ROLLOUT: rollout}
        for reading in of_gpu:
            metric = scope.metrics.add(name=reading.metric.name, unit=reading.metric.unit)
            _set(metric, reading.value, labels, time_unix_ns)
    return export


def _scope_of(export: ExportMetricsServiceRequest, service: str, instance: str) -> ScopeMetrics:
    part = export.resource_metrics.add()
    named = {a.SERVICE_NAME: service, a.SERVICE_INSTANCE_ID: instance}
    part.resource.attributes.extend(_attributes(named))
    found: ScopeMetrics = part.scope_metrics.add()
    return found


def _set(metric: Metric, value: float, labels: Mapping[str, str], time_unix_ns: int) -> None:
    point = metric.gauge.data_points.add(time_unix_nano=time_unix_ns, as_double=value)
    point.attributes.extend(_attributes(labels))


def _attributes(labels: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=k, value=AnyValue(string_value=v)) for k, v in sorted(labels.items())]
