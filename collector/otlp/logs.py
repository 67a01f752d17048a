"""OTLP log bodies to scores: the event `gen_ai.evaluation.result` of the GenAI conventions."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.contract import AttributeValue, ResponseScore, Score
from collector.contract import attributes as a
from collector.contract.names import WANTED_NAME, is_name
from collector.errors import OtlpError, RejectedError
from collector.otlp import body as otlp_body
from collector.otlp.body import Encoding
from collector.protobuf.values import read_attributes

EVENT = "gen_ai.evaluation.result"
_UNVERSIONED = "unversioned"


class ReceivedScores(NamedTuple):
    """The decoded scores of one body."""

    scores: tuple[Score, ...]
    of_responses: tuple[ResponseScore, ...]
    ignored: int
    """Number of log records that are no evaluation result."""
    rejected: tuple[str, ...]
    """The reason for each evaluation result that cannot be stored."""


class _Evaluator(NamedTuple):
    name: str
    version: str


def decode_logs(body: bytes, encoding: Encoding) -> ReceivedScores:
    """Return the scores of an export request.

    Raises `OtlpError` if the body cannot be decoded at all. A result that names no span, metric or
    evaluator is rejected without affecting the others.
    """
    message = otlp_body.parse(body, encoding, ExportLogsServiceRequest(), _rewrite_ids)
    scores: list[Score] = []
    of_responses: list[ResponseScore] = []
    rejected: list[str] = []
    ignored = 0
    for resource_logs in message.resource_logs:
        resource = read_attributes(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                if not _is_result(record):
                    ignored += 1
                    continue
                try:
                    score = _score(record, scope_logs.scope, resource)
                    if isinstance(score, Score):
                        scores.append(score)
                    else:
                        of_responses.append(score)
                except (RejectedError, OtlpError) as exc:
                    rejected.append(str(exc))
    return ReceivedScores(tuple(scores), tuple(of_responses), ignored, tuple(rejected))


def _rewrite_ids(document: otlp_body.JsonObject) -> None:
    for record in otlp_body.objects(document, "resourceLogs", "scopeLogs", "logRecords"):
        otlp_body.rewrite_hex(record, "traceId", "spanId")


def _is_result(record: LogRecord) -> bool:
    """Return whether the record is an evaluation result, by `event_name` or the older attribute."""
    if record.event_name:
        return bool(record.event_name == EVENT)
    return any(
        pair.key == a.EVENT_NAME and pair.value.string_value == EVENT for pair in record.attributes
    )


def _score(
    record: LogRecord, scope: InstrumentationScope, resource: Mapping[str, AttributeValue]
) -> Score | ResponseScore:
    attributes = read_attributes(record.attributes)
    evaluator = _evaluator(attributes, scope, resource)
    value, unscored_reason = _value(attributes)
    judged = _judged(record, attributes)
    score = Score(
        trace_id="" if isinstance(judged, str) else judged.trace_id,
        span_id="" if isinstance(judged, str) else judged.span_id,
        metric=_key(a.GEN_AI_EVALUATION_NAME, _metric(attributes)),
        evaluator=_key("the evaluator's name", evaluator.name),
        version=_key("the evaluator's version", evaluator.version),
        value=value,
        label=_text(attributes, a.GEN_AI_EVALUATION_SCORE_LABEL),
        explanation=_text(attributes, a.GEN_AI_EVALUATION_EXPLANATION),
        unscored_reason=unscored_reason,
    )
    return ResponseScore(judged, score) if isinstance(judged, str) else score


class _Span(NamedTuple):
    trace_id: str
    span_id: str


def _judged(record: LogRecord, attributes: Mapping[str, AttributeValue]) -> _Span | str:
    """Return the judged span, or the response id of the judged answer."""
    if len(record.trace_id) == 16 and len(record.span_id) == 8:
        if any(record.trace_id) and any(record.span_id):
            return _Span(record.trace_id.hex(), record.span_id.hex())
    elif not record.span_id and (response_id := _text(attributes, a.GEN_AI_RESPONSE_ID)):
        return _key(a.GEN_AI_RESPONSE_ID, response_id)
    raise RejectedError(
        "trace_id, span_id: wanted the 16 and 8 bytes of the evaluated span, not all zero, or "
        f"{a.GEN_AI_RESPONSE_ID}"
    )


def _metric(attributes: Mapping[str, AttributeValue]) -> str:
    metric = _text(attributes, a.GEN_AI_EVALUATION_NAME)
    if metric is None:
        raise RejectedError(f"{a.GEN_AI_EVALUATION_NAME}: wanted the metric's name, a string")
    return metric


def _key(name: str, text: str) -> str:
    """Return the text if it is a valid name, else raise `RejectedError`."""
    if not is_name(text):
        raise RejectedError(f"{name}: {WANTED_NAME}")
    return text


def _evaluator(
    attributes: Mapping[str, AttributeValue],
    scope: InstrumentationScope,
    resource: Mapping[str, AttributeValue],
) -> _Evaluator:
    """Return the evaluator, named by the event's attributes, else the scope, else the service."""
    for name, version in (
        (
            _text(attributes, a.DRAFTGATE_EVALUATOR_NAME),
            _text(attributes, a.DRAFTGATE_EVALUATOR_VERSION),
        ),
        (scope.name or None, scope.version or None),
        (_text(resource, a.SERVICE_NAME), _text(resource, a.SERVICE_VERSION)),
    ):
        if name is not None:
            return _Evaluator(name, version or _UNVERSIONED)
    raise RejectedError(
        f"no evaluator: wanted {a.DRAFTGATE_EVALUATOR_NAME}, the scope's name, or {a.SERVICE_NAME}"
    )


def _value(attributes: Mapping[str, AttributeValue]) -> tuple[float | None, str | None]:
    """Return the value, or the reason why there is none: values are never scaled or clipped."""
    error = _text(attributes, a.ERROR_TYPE)
    if error is not None:
        return None, f"{a.ERROR_TYPE}: {error}"
    value = attributes.get(a.GEN_AI_EVALUATION_SCORE_VALUE)
    if value is None:
        return None, f"{a.GEN_AI_EVALUATION_SCORE_VALUE}: absent"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"{a.GEN_AI_EVALUATION_SCORE_VALUE}: wanted a number"
    if math.isfinite(value) and 0 <= value <= 1:
        return float(value), None
    return None, f"{a.GEN_AI_EVALUATION_SCORE_VALUE}: {value!r} lies outside [0, 1]"


def _text(attributes: Mapping[str, AttributeValue], name: str) -> str | None:
    value = attributes.get(name)
    return value if isinstance(value, str) and value else None
