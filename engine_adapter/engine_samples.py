"""Samples of what the engines' own metrics say while a run lasts, sent as OTLP metrics.

Asked every few seconds, beside the requests: how full the KV cache is, how many requests run and
wait, and what a DCGM exporter says of the GPUs. A scrape that fails is counted and left out: it is
no reason to end a run.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from prometheus_client.parser import text_string_to_metric_families

from collector.contract import Arm
from collector.contract import attributes as a
from engine_adapter.collector_access import CollectorAccess
from engine_adapter.errors import GenerationError, TelemetryError
from engine_adapter.transport import HttpClient, Timeouts

EVERY_S = 5.0
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
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_POWER_USAGE",
    )
)


class Source(NamedTuple):
    """One page of metrics."""

    arm: Arm
    url: str
    service: str


class Tally(NamedTuple):
    """How sampling went."""

    sent: int
    failed: int
    """Scrapes that were not answered or not taken."""


class EngineSampler:
    """Samples until it is left; an asynchronous context manager."""

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        rollout: str,
        collector_url: str,
        every_s: float = EVERY_S,
    ) -> None:
        self.tally = Tally(0, 0)
        self._sources = sources
        self._rollout = rollout
        self._url = f"{collector_url.rstrip('/')}/v1/metrics"
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "EngineSampler":
        if self._sources:
            self._task = asyncio.create_task(self._sample_for_ever())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _sample_for_ever(self) -> None:
        client = HttpClient("", timeouts=Timeouts(connect_s=2, first_byte_s=2, total_s=5))
        access = CollectorAccess.from_environment()
        try:
            async with httpx.AsyncClient(verify=access.tls(), timeout=5) as collector:
                while True:
                    for source in self._sources:
                        sent = await self._sample(source, client, collector, access.headers)
                        counted = (sent, 0) if sent is not None else (0, 1)
                        self.tally = Tally(
                            self.tally.sent + (counted[0] or 0), self.tally.failed + counted[1]
                        )
                    await asyncio.sleep(self._every_s)
        except TelemetryError:  # the spans' sender has said so already
            return
        finally:
            await client.close()

    async def _sample(
        self,
        source: Source,
        client: HttpClient,
        collector: httpx.AsyncClient,
        headers: Mapping[str, str],
    ) -> int | None:
        """Return how many samples were stored of one scrape; `None` where it failed."""
        try:
            page = await client.get(source.url)
            export = exported(page.body.decode(), source, self._rollout, time.time_ns())
            points = len(export.resource_metrics[0].scope_metrics[0].metrics)
            if points:
                answer = await collector.post(
                    self._url,
                    content=export.SerializeToString(),
                    headers={**headers, "content-type": "application/x-protobuf"},
                )
                answer.raise_for_status()
        except (GenerationError, httpx.HTTPError, ValueError):
            return None
        return points


def exported(
    page: str, source: Source, rollout: str, time_unix_ns: int
) -> ExportMetricsServiceRequest:
    """Return the page's gauges that tell how busy an engine is; raises `ValueError`."""
    export = ExportMetricsServiceRequest()
    resource = export.resource_metrics.add()
    resource.resource.attributes.extend(
        (
            _attribute(a.SERVICE_NAME, source.service),
            _attribute(a.SERVICE_INSTANCE_ID, urlsplit(source.url).netloc),
        )
    )
    scope = resource.scope_metrics.add()
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name in _GAUGES:
                metric = scope.metrics.add(name=sample.name)
                point = metric.gauge.data_points.add(
                    time_unix_nano=time_unix_ns, as_double=sample.value
                )
                labels = sample.labels | {
                    a.DRAFTGATE_ROLLOUT: rollout,
                    a.DRAFTGATE_ARM: source.arm.value,
                }
                point.attributes.extend(_attribute(*label) for label in sorted(labels.items()))
    return export


def _attribute(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))
