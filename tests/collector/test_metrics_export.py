"""The metrics of rollouts over OTLP: those of `/metrics`, and nobody waits for the receiver."""

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from made_verdicts import made_verdict, resting_on, send_pairs
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from prometheus_client.parser import text_string_to_metric_families
from waiting import until
from webhook_receiver import Receiver, answer, close_half_way, endless, free_port, never, receiving

from collector.client import Client
from collector.contract import Outcome, Switch
from collector.errors import SettingsError
from collector.settings import from_environment

Serve = Callable[..., Any]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def environment(url: str) -> dict[str, str]:
    return {"DRAFTGATE_METRICS_ENDPOINT": url, "OTEL_METRIC_EXPORT_INTERVAL": "200"}


def sent(body: bytes) -> Samples:
    """Return the samples of a request, as a stock receiver reads them."""
    (of_resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    names = {one.key: one.value.string_value for one in of_resource.resource.attributes}
    assert names["service.name"] == "draftgate"
    return {
        (metric.name, frozenset((a.key, a.value.string_value) for a in point.attributes)): (
            point.as_double if point.HasField("as_double") else point.as_int
        )
        for scope in of_resource.scope_metrics
        for metric in scope.metrics
        for point in metric.gauge.data_points
    }


def scraped(url: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
        for sample in family.samples
        if sample.name.startswith("draftgate_rollout")
    }


def newest(receiver: Receiver) -> Samples:
    return sent(receiver.received[-1].body) if receiver.received else {}


def without_age(samples: Samples) -> Samples:
    return {key: value for key, value in samples.items() if not key[0].endswith("age_seconds")}


@pytest.mark.slow
def test_what_is_scraped_is_sent(serve: Serve, database_url: str) -> None:
    """The same names, labels and values; a receiver that was down gets the next ones."""
    port = free_port()
    server = serve(database_url, env=environment(f"http://127.0.0.1:{port}/v1/metrics"))
    with Client(server.url) as client:
        send_pairs(client, "k4")
        client.post_verdict(resting_on(client, made_verdict(Outcome.PASS, rollout="k4")))
        client.set_switch("k4", Switch.ON, reason="begin")
    on = ("draftgate_rollout_switch_on", frozenset({("rollout", "k4")}))
    with receiving(port) as receiver:
        faults = [close_half_way, answer(500)]
        receiver.behaviour = lambda handler, n: [*faults, *[answer(200)] * 999][n](handler, n)
        until(lambda: newest(receiver).get(on) == 1)
        assert receiver.received[-1].path == "/v1/metrics"
        until(lambda: without_age(newest(receiver)) == without_age(scraped(server.url)))
        assert newest(receiver).keys() == scraped(server.url).keys()
    assert server.stop() == 0


def test_a_receiver_that_never_answers_slows_nobody(serve: Serve, database_url: str) -> None:
    """Senders are answered meanwhile, and the collector stops."""
    gone = threading.Event()
    with receiving() as receiver:
        receiver.behaviour = never(gone)
        server = serve(database_url, env=environment(f"{receiver.url}/v1/metrics"))
        until(lambda: len(receiver.received) == 1)
        with Client(server.url) as client:
            send_pairs(client, "k4", 50)
            assert [one.pairs for one in client.rollouts()] == [50]
        assert len(receiver.received) == 1
        assert server.stop() == 0
        gone.set()


def test_a_receivers_answer_without_end_is_not_read(serve: Serve, database_url: str) -> None:
    """It would fill the memory, and no further metrics would be sent."""
    with receiving() as receiver:
        receiver.behaviour = endless
        server = serve(database_url, env=environment(f"{receiver.url}/v1/metrics"))
        until(lambda: len(receiver.received) >= 3)
        assert server.stop() == 0


@pytest.mark.parametrize(
    "given",
    [
        {"DRAFTGATE_METRICS_ENDPOINT": "otel:4318"},
        {"OTEL_METRIC_EXPORT_INTERVAL": "soon"},
        {"OTEL_METRIC_EXPORT_INTERVAL": "0"},
    ],
)
def test_an_unusable_setting_is_named(given: dict[str, str]) -> None:
    """With the value that was given."""
    ((name, value),) = given.items()
    with pytest.raises(SettingsError, match=f"{name}='?{value}"):
        from_environment(given)
