"""Evaluation results that name an answer by its response id."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from made_generations import generation_of
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from otlp_bodies import export_request, fill_attributes

from collector.client import Client
from collector.contract import Generation, encode


@pytest.fixture(params=["sqlite", "postgresql"])
def client(request: pytest.FixtureRequest, new_database_url: Callable[[str], str]) -> Any:
    with Client.local(new_database_url(request.param), capture_content=True) as opened:
        yield opened


def result(client: Client, response_id: str, value: float = 0.5) -> None:
    """Post a result that has no span."""
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.event_name = "gen_ai.evaluation.result"
    fill_attributes(
        record.attributes,
        {
            "gen_ai.evaluation.name": "helpfulness",
            "gen_ai.evaluation.score.value": value,
            "draftgate.evaluator.name": "e",
            "gen_ai.response.id": response_id,
        },
    )
    headers = {"content-type": "application/x-protobuf"}
    body = request.SerializeToString()
    client._connection.send("POST", "/v1/logs", content=body, headers=headers)


def answer(client: Client, made: Generation, response_id: str) -> None:
    """Post a generation."""
    named = replace(made, rollout="k4", response_id=response_id)
    client.post_traces(export_request([encode(named)]).SerializeToString())


@pytest.mark.parametrize("first", ["result", "answer"])
def test_a_result_is_joined_whichever_comes_first(client: Client, first: str) -> None:
    """It becomes the score of the generation that has the response id, and of no other."""
    steps = [
        lambda: result(client, "r1"),
        lambda: answer(client, generation_of(1), "r1"),
    ]
    answer(client, generation_of(2), "r2")
    for step in steps if first == "result" else reversed(steps):
        step()
    (score,) = client.scores("k4")
    one = generation_of(1)
    assert (score.trace_id, score.span_id) == (one.trace_id, one.span_id)
    assert (score.metric, score.value) == ("helpfulness", 0.5)


def test_a_later_result_replaces_the_earlier(client: Client) -> None:
    """As with results that name their span."""
    result(client, "r1", 0.25)
    result(client, "r1", 0.75)
    answer(client, generation_of(1), "r1")
    (score,) = client.scores("k4")
    assert score.value == 0.75
    assert list(client.scores("k4")) == [score]
