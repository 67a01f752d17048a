"""`/v1/logs`: evaluation results become scores, every other record is ignored."""

import json
import math
from dataclasses import replace
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from otlp_bodies import PROTOBUF, logs_request

from collector.contract import Score
from collector.errors import OtlpError
from collector.otlp.body import Encoding
from collector.otlp.logs import decode_logs

TRACE, SPAN = bytes(range(16)), bytes(range(8))
RESULT = "gen_ai.evaluation.result"
NAME = {"gen_ai.evaluation.name": "relevance"}
VALUE = "gen_ai.evaluation.score.value"


def event(attributes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    given = {"trace_id": TRACE, "span_id": SPAN, "event_name": RESULT, "attributes": attributes}
    return given | fields


def decoded(*records: dict[str, Any], **origin: Any) -> Any:
    return decode_logs(logs_request(records, **origin).SerializeToString(), Encoding.PROTOBUF)


WHOLE = Score(
    trace_id=TRACE.hex(),
    span_id=SPAN.hex(),
    metric="relevance",
    evaluator="judge",
    version="2",
    value=0.75,
    label="relevant",
    explanation="it answers",
)
WHOLE_ATTRIBUTES = NAME | {
    VALUE: 0.75,
    "gen_ai.evaluation.score.label": "relevant",
    "gen_ai.evaluation.explanation": "it answers",
    "gen_ai.response.id": "r1",
}


def test_an_evaluation_result_is_a_score() -> None:
    """By its event name, or by the attribute that older SDKs write; other records are counted."""
    older = event(WHOLE_ATTRIBUTES | {"event.name": RESULT}, event_name="")
    other = [event({}, event_name="exception"), event({"event.name": "x"}, event_name="")]
    received = decoded(event(WHOLE_ATTRIBUTES), older, *other)
    assert received == ((WHOLE, WHOLE), (), 2, ())


def test_both_encodings_hold_the_same_scores() -> None:
    """JSON's ids are hexadecimal."""
    request = logs_request([event(WHOLE_ATTRIBUTES), event({}, event_name="other")])
    document = json_format.MessageToDict(request)
    for record in document["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
        record |= {"traceId": TRACE.hex(), "spanId": SPAN.hex().upper()}
    assert decode_logs(json.dumps(document).encode(), Encoding.JSON) == ((WHOLE,), (), 1, ())


@pytest.mark.parametrize(
    ("attributes", "value", "reason"),
    [
        ({VALUE: 0}, 0.0, None),
        ({VALUE: 1.0}, 1.0, None),
        ({VALUE: 1.5}, None, f"{VALUE}: 1.5 lies outside [0, 1]"),
        ({VALUE: -1}, None, f"{VALUE}: -1 lies outside [0, 1]"),
        ({VALUE: math.nan}, None, f"{VALUE}: nan lies outside [0, 1]"),
        ({VALUE: math.inf}, None, f"{VALUE}: inf lies outside [0, 1]"),
        ({VALUE: True}, None, f"{VALUE}: wanted a number"),
        ({VALUE: "0.5"}, None, f"{VALUE}: wanted a number"),
        ({}, None, f"{VALUE}: absent"),
        ({"error.type": "timeout"}, None, "error.type: timeout"),
        ({VALUE: 0.5, "error.type": "timeout"}, None, "error.type: timeout"),
    ],
)
def test_no_number_is_invented(
    attributes: dict[str, Any], value: float | None, reason: str | None
) -> None:
    """A value that is not a number in [0, 1] gives a score without a value, and the reason."""
    (score,) = decoded(event(NAME | attributes)).scores
    assert (score.value, score.unscored_reason) == (value, reason)


IDS = "trace_id, span_id: wanted the 16 and 8 bytes of the evaluated span, not all zero"


@pytest.mark.parametrize(
    ("attributes", "fields", "reason"),
    [
        ({}, {}, "gen_ai.evaluation.name: wanted the metric's name, a string"),
        ({"gen_ai.evaluation.name": 3}, {}, "gen_ai.evaluation.name: wanted the metric's name"),
        (
            {"gen_ai.evaluation.name": "x" * 256},
            {},
            "gen_ai.evaluation.name: wanted up to 255 characters, none of them a control character",
        ),
        (
            NAME | {"draftgate.evaluator.name": "a\0"},
            {},
            "the evaluator's name: wanted up to 255 characters, none of them a control character",
        ),
        (NAME, {"trace_id": b"", "span_id": b""}, IDS),
        (NAME, {"trace_id": b""}, IDS),
        (NAME, {"span_id": b"1"}, IDS),
        (NAME, {"span_id": bytes(8)}, IDS),
        (
            NAME | {"gen_ai.response.id": "a\0"},
            {"trace_id": b"", "span_id": b""},
            "gen_ai.response.id: wanted up to 255 characters, none of them a control character",
        ),
    ],
)
def test_a_result_that_cannot_be_stored_is_rejected_alone(
    attributes: dict[str, Any], fields: dict[str, Any], reason: str
) -> None:
    """The reason is given, and the result beside it is kept."""
    received = decoded(event(attributes, **fields), event(WHOLE_ATTRIBUTES))
    assert received.scores == (WHOLE,)
    (found,) = received.rejected
    assert found.startswith(reason)


@pytest.mark.parametrize(
    ("own", "scope", "resource", "evaluator"),
    [
        ({"draftgate.evaluator.name": "a"}, ("b", "2"), {}, ("a", "unversioned")),
        (
            {"draftgate.evaluator.name": "a", "draftgate.evaluator.version": "1"},
            ("b", "2"),
            {},
            ("a", "1"),
        ),
        ({}, ("b", ""), {"service.name": "c", "service.version": "3"}, ("b", "unversioned")),
        ({}, ("", "9"), {"service.name": "c", "service.version": "3"}, ("c", "3")),
    ],
)
def test_the_evaluator_is_the_nearest_that_has_a_name(
    own: dict[str, Any],
    scope: tuple[str, str],
    resource: dict[str, Any],
    evaluator: tuple[str, str],
) -> None:
    """The event's own attributes, else the scope, else the service; versions are not mixed."""
    (score,) = decoded(event(NAME | own), scope=scope, resource=resource).scores
    assert (score.evaluator, score.version) == evaluator


def test_without_an_evaluator_a_result_is_rejected() -> None:
    """A score is stored by its evaluator, so there must be one."""
    (reason,) = decoded(event(NAME), scope=("", "")).rejected
    assert reason.startswith("no evaluator: wanted draftgate.evaluator.name")


def test_the_answer_counts_what_was_rejected(http: httpx.Client) -> None:
    """Partial success in protobuf; the collector's own counters tell ignored from rejected."""
    body = logs_request([event(WHOLE_ATTRIBUTES), event({}), event({}, event_name="other")])
    answer = http.post("/v1/logs", content=body.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    partial = ExportLogsServiceResponse.FromString(answer.content).partial_success
    reason = "gen_ai.evaluation.name: wanted the metric's name, a string"
    assert (partial.rejected_log_records, partial.error_message) == (1, f"1 × {reason}")
    assert http.post("/v1/logs", content=b"x", headers=PROTOBUF).status_code == 400
    state = http._transport._app.state.collector  # type: ignore[attr-defined]
    counts = state.counters.log_records
    assert (counts.received, counts.ignored) == (3, 1)
    assert counts.rejected == {"gen_ai.evaluation.name": 1}
    assert counts.refused == {"INVALID_ARGUMENT": 1}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[]", "wanted a JSON object, got list"),
        (b'{"resourceLogs": 3}', "the body is no OTLP JSON"),
        (b'{"resourceLogs": [3]}', "the body is no OTLP JSON"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
    ],
)
def test_json_of_another_shape_is_refused(body: bytes, words: str) -> None:
    """One line with the expected value."""
    with pytest.raises(OtlpError, match=words):
        decode_logs(body, Encoding.JSON)


@pytest.mark.parametrize("trace_id", [b"", TRACE])
def test_a_result_without_a_span_names_the_answer(trace_id: bytes) -> None:
    """By its response id; the trace is the evaluator's, and says nothing of the answer's."""
    received = decoded(event(WHOLE_ATTRIBUTES, trace_id=trace_id, span_id=b""))
    (one,) = received.of_responses
    assert (one.response_id, one.score) == ("r1", replace(WHOLE, trace_id="", span_id=""))
    assert (received.scores, received.rejected) == ((), ())
