"""`/v1/metrics`: an engine's gauges and sums become samples, every other point is ignored."""

import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from otlp_bodies import PROTOBUF, metrics_request

from collector.client import Client
from collector.contract import EngineSample, SampleKind
from collector.otlp.body import Encoding
from collector.otlp.engine_metrics import PREFIXES, is_engine_metric
from collector.otlp.metrics import decode_metrics

RESOURCE = {"service.name": "engine", "service.instance.id": "gpu-0", "host.name": "h"}
RUNNING = "vllm:num_requests_running"


def point(value: Any = 3, at: int = 7, **fields: Any) -> dict[str, Any]:
    key = "asInt" if isinstance(value, int) else "asDouble"
    return {"timeUnixNano": str(at), key: value, **fields}


def gauge(name: str, *points: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": name, "gauge": {"dataPoints": points}, **fields}


def total(name: str, temporality: int, *points: dict[str, Any], monotonic: bool = True) -> Any:
    data = {
        "dataPoints": points,
        "aggregationTemporality": temporality,
        "isMonotonic": monotonic,
    }
    return {"name": name, "sum": data}


def decoded(*metrics: dict[str, Any], resource: Any = None) -> Any:
    request = metrics_request(metrics, resource=RESOURCE if resource is None else resource)
    return decode_metrics(request.SerializeToString(), Encoding.PROTOBUF)


def sample(**fields: Any) -> EngineSample:
    given = {
        "time_unix_ns": 7,
        "service_name": "engine",
        "instance": "gpu-0",
        "metric": RUNNING,
        "kind": SampleKind.GAUGE,
        "value": 3.0,
    }
    return EngineSample(**(given | fields))


def test_gauges_and_sums_are_samples() -> None:
    """How a sum is to be read is stored with it; labels are text, whatever they were."""
    labels = [
        {"key": "model_name", "value": {"stringValue": "m"}},
        {"key": "engine", "value": {"intValue": "0"}},
        {"key": "on", "value": {"boolValue": True}},
        {"key": "list", "value": {"arrayValue": {"values": [{"doubleValue": 0.5}]}}},
    ]
    received = decoded(
        gauge(RUNNING, point(attributes=labels), point(2.5, at=8), unit="1"),
        total("vllm:prompt_tokens_total", 2, point()),
        total("sglang:num_used_tokens", 2, point(), monotonic=False),
        total("draftgate.engine.requests", 1, point()),
    )
    assert received == (
        (
            sample(
                unit="1",
                attributes={"engine": "0", "list": "[0.5]", "model_name": "m", "on": "true"},
            ),
            sample(unit="1", time_unix_ns=8, value=2.5),
            sample(metric="vllm:prompt_tokens_total", kind=SampleKind.COUNTER),
            sample(metric="sglang:num_used_tokens"),
            sample(metric="draftgate.engine.requests", kind=SampleKind.DELTA),
        ),
        0,
        (),
    )


@pytest.mark.parametrize(
    ("resource", "service", "instance"),
    [
        ({}, None, None),
        ({"service.name": "s", "host.name": "h"}, "s", "h"),
        ({"service.instance.id": 4}, None, "4"),
    ],
)
def test_what_nobody_named_is_absent(
    resource: dict[str, Any], service: str | None, instance: str | None
) -> None:
    """The instance is the service's own id, else the host."""
    (found,) = decoded(gauge(RUNNING, point()), resource=resource).samples
    assert (found.service_name, found.instance) == (service, instance)


def test_other_metrics_are_ignored_and_counted() -> None:
    """So are histograms and summaries of engines, and points flagged as without a value."""
    bare = {"timeUnixNano": "7", "count": "1"}
    received = decoded(
        gauge("http.server.active_requests", point(), point()),
        {"name": "vllm:e2e_seconds", "histogram": {"dataPoints": [bare]}},
        {"name": "vllm:e2e_seconds", "exponentialHistogram": {"dataPoints": [bare]}},
        {"name": "vllm:e2e_seconds", "summary": {"dataPoints": [bare]}},
        {"name": "vllm:nothing"},
        gauge(RUNNING, {"timeUnixNano": "7", "flags": 1}),
    )
    assert received == ((), 6, ())


@pytest.mark.parametrize("name", [*PREFIXES, "xvllm:", "tgi", "VLLM:x"])
def test_an_engine_metric_is_known_by_the_beginning_of_its_name(name: str) -> None:
    """Case and position count."""
    assert is_engine_metric(f"{name}x") == (name in PREFIXES)


LONG = "vllm:" + "x" * 251


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (gauge(RUNNING, point("NaN")), "value: wanted a finite number, got NaN or an infinity"),
        (gauge(RUNNING, point("-Infinity")), "value: wanted a finite number"),
        (gauge(RUNNING, {"timeUnixNano": "7"}), "value: absent"),
        (gauge(RUNNING, point(at=0)), "time_unix_nano: wanted Unix nanoseconds from 1"),
        (gauge(RUNNING, point(at=2**63)), "time_unix_nano: wanted Unix nanoseconds from 1"),
        (
            gauge(LONG, point()),
            "metric name: wanted up to 255 characters, none of them a control character",
        ),
        (gauge("vllm:\0", point()), "metric name: wanted up to 255 characters"),
        (
            gauge(
                RUNNING,
                point(attributes=[{"key": "k", "value": {"stringValue": "x" * 4096}}]),
            ),
            "attributes: wanted up to 4096 characters in all",
        ),
    ],
)
def test_a_point_that_cannot_be_stored_is_rejected_alone(
    metric: dict[str, Any], reason: str
) -> None:
    """The reason is given, and the point beside it is kept."""
    received = decoded(metric, gauge(RUNNING, point()))
    assert received.samples == (sample(),)
    (found,) = received.rejected
    assert found.startswith(reason)


def test_json_with_exemplars_is_read(http: httpx.Client) -> None:
    """Exemplars are left out, whatever their ids look like."""
    exemplar = {"traceId": "0" * 31 + "!", "spanId": "zz", "asDouble": 1}
    document = {
        "resourceMetrics": [
            {"scopeMetrics": [{"metrics": [gauge(RUNNING, point(exemplars=[exemplar]))]}]}
        ]
    }
    headers = {"Content-Type": "application/json"}
    answer = http.post("/v1/metrics", content=json.dumps(document), headers=headers)
    assert (answer.status_code, answer.json()) == (200, {})
    (found,) = client_of(http).samples(RUNNING)
    assert found == sample(service_name=None, instance=None)


def test_samples_are_read_by_metric_service_and_window(http: httpx.Client) -> None:
    """From the begin to before the end, by time, page by page; sent again, the first stays."""
    for service in ("a", "b"):
        for value in (1, 2):
            points = [point(value, at=at) for at in range(10, 1510)]
            send(http, [gauge(RUNNING, *points), gauge("tgi_queue_size", point())], service)
    client = client_of(http)
    found = list(client.samples(RUNNING, service_name="a"))
    assert [(s.time_unix_ns, s.service_name, s.value) for s in found] == [
        (at, "a", 1.0) for at in range(10, 1510)
    ]
    window = list(client.samples(RUNNING, since_unix_ns=20, until_unix_ns=22))
    assert [(s.time_unix_ns, s.service_name) for s in window] in (
        [(20, "a"), (20, "b"), (21, "a"), (21, "b")],
        [(20, "b"), (20, "a"), (21, "b"), (21, "a")],
    )
    assert len(list(client.samples(RUNNING))) == 3000
    assert list(client.samples("vllm:unknown")) == []


def test_labels_and_instances_are_series_of_their_own(http: httpx.Client) -> None:
    """At one time, each has its value."""
    labels = [[], *([{"key": "gpu", "value": {"intValue": str(n)}}] for n in (0, 1))]
    points = [point(n, attributes=label) for n, label in enumerate(labels)]
    send(http, [gauge("DCGM_FI_DEV_GPU_UTIL", *points)], "node")
    found = client_of(http).samples("DCGM_FI_DEV_GPU_UTIL")
    assert {(s.attributes.get("gpu"), s.value) for s in found} == {(None, 0), ("0", 1), ("1", 2)}


def test_a_cursor_of_another_page_is_refused(http: httpx.Client) -> None:
    """Text that is not a cursor is the reader's fault."""
    for after in ("x", "WzcsICJ6eiJd"):
        answer = http.get("/api/v1/samples", params={"metric": RUNNING, "after": after})
        assert answer.status_code == 400
        assert f"after='{after}': is not a cursor" in answer.json()["detail"]


def send(http: httpx.Client, metrics: Iterable[dict[str, Any]], service: str) -> None:
    body = metrics_request(metrics, resource={"service.name": service}).SerializeToString()
    assert http.post("/v1/metrics", content=body, headers=PROTOBUF).content == b""


def client_of(http: httpx.Client) -> Client:
    return Client("http://collector", transport=http._transport)
