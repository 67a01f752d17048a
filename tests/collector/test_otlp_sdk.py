"""The stock OpenTelemetry SDK sends traces, logs and metrics, over HTTP and gRPC."""

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc_logs
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_metrics
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_traces
from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_logs
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_traces
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from sqlite_database import locked
from waiting import until, until_queued

from collector.client import Client
from collector.contract import Arm, Generation, SampleKind, Score

RESOURCE = Resource({"service.name": "engine", "service.instance.id": "0"})
GENERATION = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "draftgate.rollout": "r",
    "draftgate.arm": "baseline",
    "gen_ai.response.finish_reasons": ["stop"],
}


def exporters_over_http(server: Any, compression: str) -> tuple[Any, Any, Any]:
    given = {"compression": HttpCompression(compression)}
    return (
        http_traces.OTLPSpanExporter(f"{server.url}/v1/traces", **given),
        http_logs.OTLPLogExporter(f"{server.url}/v1/logs", **given),
        http_metrics.OTLPMetricExporter(f"{server.url}/v1/metrics", **given),
    )


def exporters_over_grpc(server: Any, compression: str) -> tuple[Any, Any, Any]:
    import grpc

    by_name = {"none": grpc.Compression.NoCompression, "gzip": grpc.Compression.Gzip}
    given = {"endpoint": server.grpc, "insecure": True, "compression": by_name[compression]}
    return (
        grpc_traces.OTLPSpanExporter(**given),
        grpc_logs.OTLPLogExporter(**given),
        grpc_metrics.OTLPMetricExporter(**given),
    )


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("exporters_of", [exporters_over_http, exporters_over_grpc])
def test_all_three_signals_arrive(
    exporters_of: Callable[[Any, str], tuple[Any, Any, Any]],
    compression: str,
    serve: Callable[..., Any],
    database_url: str,
) -> None:
    """A generation, the score that an evaluation event gives it, and an engine's counters."""
    server = serve(database_url)
    spans, logs, metrics = exporters_of(server, compression)
    tracers = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(spans))
    loggers = LoggerProvider(resource=RESOURCE, shutdown_on_exit=False)
    loggers.add_log_record_processor(BatchLogRecordProcessor(logs))
    reader = PeriodicExportingMetricReader(metrics, export_interval_millis=3_600_000)
    meters = MeterProvider([reader], resource=RESOURCE, shutdown_on_exit=False)
    # The SDK takes no colon in an instrument's name.
    running = meters.get_meter("engine").create_gauge("vllm.num_requests_running", unit="1")
    running.set(4, {"model_name": "m"})
    meters.get_meter("engine").create_counter("vllm.tokens").add(7)
    meters.get_meter("engine").create_histogram("vllm.e2e").record(0.5)

    span = tracers.get_tracer("app").start_span("chat m", attributes=GENERATION, start_time=1)
    judge = loggers.get_logger("judge", "3")
    judge.emit(
        event_name="gen_ai.evaluation.result",
        attributes={"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.5},
        context=trace.set_span_in_context(span),
    )
    judge.emit(body="a plain line")
    span.end(5)
    for provider in (tracers, loggers, meters):
        provider.shutdown()

    ids = {
        "trace_id": trace.format_trace_id(span.get_span_context().trace_id),
        "span_id": trace.format_span_id(span.get_span_context().span_id),
    }
    with Client(server.url) as client:
        assert list(client.generations("r")) == [
            Generation(
                **ids,
                start_unix_ns=1,
                end_unix_ns=5,
                request_model="m",
                rollout="r",
                arm=Arm.BASELINE,
                finish_reasons=("stop",),
                service_name="engine",
            )
        ]
        assert list(client.scores("r")) == [
            Score(**ids, metric="relevance", evaluator="judge", version="3", value=0.5)
        ]
        (gauge,) = client.samples("vllm.num_requests_running", service_name="engine")
        (counter,) = client.samples("vllm.tokens")
        assert list(client.samples("vllm.e2e")) == []
    assert (gauge.value, gauge.unit, gauge.instance) == (4.0, "1", "0")
    assert (gauge.kind, gauge.attributes) == (SampleKind.GAUGE, {"model_name": "m"})
    assert (counter.value, counter.kind) == (7.0, SampleKind.COUNTER)
    assert server.stop() == 0


def test_an_exporter_comes_again_after_a_full_queue(
    serve: Callable[..., Any], database_url: str
) -> None:
    """It is refused before its long body is read, has sent it all the same, and loses nothing."""
    server = serve(database_url, env={"DRAFTGATE_MAX_QUEUE_BYTES": "1"})
    exported = []

    def export(number_of_spans: int) -> None:
        tracers = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
        tracer = tracers.get_tracer("app")
        spans = [
            tracer.start_span("chat m", attributes=GENERATION | {"text": "x" * 100_000})
            for _ in range(number_of_spans)
        ]
        for span in spans:
            span.end()
        exporter = http_traces.OTLPSpanExporter(f"{server.url}/v1/traces")
        exported.append(exporter.export(spans))  # type: ignore[arg-type]  # it reads them all

    def metrics() -> str:
        return httpx.get(f"{server.url}/metrics").text

    waiting, refused = (threading.Thread(target=export, args=(n,)) for n in (1, 30))
    with locked(database_url):
        waiting.start()
        until_queued(server.url)
        refused.start()
        until(lambda: 'code="UNAVAILABLE"' in metrics())
    for thread in (waiting, refused):
        thread.join()
    assert exported == [SpanExportResult.SUCCESS] * 2
    with Client(server.url) as client:
        assert len(list(client.generations("r"))) == 31
    assert server.stop() == 0
