"""OTLP over HTTP: `POST /v1/traces`, `/v1/logs` and `/v1/metrics`."""

import traceback
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response
from google.protobuf import json_format
from google.protobuf.message import Message
from starlette.requests import ClientDisconnect

from collector.api import bodies
from collector.api.access import grant_in
from collector.api.codings import inflate, is_plain
from collector.api.problems import retry_headers, status_of
from collector.api.routing import DescribedRoute
from collector.api.state import Collector, State
from collector.api_key import Scope
from collector.errors import CollectorError, MediaTypeError
from collector.ingest import export
from collector.ingest.export import Sender
from collector.ingest.signals import LOGS, METRICS, TRACES, Signal
from collector.otlp.body import Encoding

_ANY_BODY = {
    encoding.value: {"schema": {"type": "string", "format": "binary"}} for encoding in Encoding
}
_ROUTE: dict[str, Any] = {  # Any: the options of a route
    "response_class": Response,
    "responses": {
        200: {"description": "Stored; `partialSuccess` counts what was rejected."},
        400: {"description": "The body cannot be decoded (google.rpc.Status)."},
        413: {"description": "The body is too large (google.rpc.Status)."},
        415: {"description": "The body's type or coding is not supported (google.rpc.Status)."},
        503: {"description": "It cannot be stored now; see Retry-After (google.rpc.Status)."},
    },
    "openapi_extra": {"requestBody": {"required": True, "content": _ANY_BODY}},
}

router = APIRouter(prefix="/v1", tags=["otlp"], route_class=DescribedRoute)


@router.post("/traces", **_ROUTE)
async def export_traces(request: Request, collector: Collector) -> Response:
    """Store the spans of an OTLP export; a 200 means that they are durable.

    Idempotent by trace id and span id: a span that is stored already is not changed. Protobuf or
    JSON, by content type; gzip, deflate and zstd are supported. Langfuse's SDKs post to
    `/api/public/otel/v1/traces`, which does the same.
    """
    return await _export(request, collector, TRACES)


@router.post("/logs", **_ROUTE)
async def export_logs(request: Request, collector: Collector) -> Response:
    """Store the evaluation results of an OTLP export as scores; ignore every other log record.

    Idempotent by span, metric, evaluator and version: the last one sent wins. Scores, here and in
    spans, need the scope judge in addition to ingest.
    """
    return await _export(request, collector, LOGS)


@router.post("/metrics", **_ROUTE)
async def export_metrics(request: Request, collector: Collector) -> Response:
    """Store the gauges and sums of engines as samples; ignore every other metric.

    Idempotent by metric, time, service, instance and attributes: the first one sent stays.
    """
    return await _export(request, collector, METRICS)


async def _export(request: Request, collector: State, signal: Signal) -> Response:
    answer_as = Encoding.JSON
    try:
        with collector.exporter.counting_refusals(signal):
            answer_as = _encoding(request.headers.get("content-type", ""))
            answer = await _store(request, collector, signal, answer_as)
    except CollectorError as exc:
        traceback.clear_frames(exc.__traceback__)  # frees the body, kept by reference cycles
        return _respond(export.status_of(exc), answer_as, status_of(exc))
    except ClientDisconnect:
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # the client is gone
    return _respond(answer, answer_as, HTTPStatus.OK)


async def _store(request: Request, collector: State, signal: Signal, encoding: Encoding) -> Message:
    limit, admission = collector.settings.max_body_bytes, collector.ingest.admission
    # Before the body is read: reading is most of the cost of a refusal.
    admission.check(bodies.announced_bytes(request, limit))
    coding = request.headers.get("content-encoding", "")
    grant = grant_in(request.scope)
    sender = Sender(judges=Scope.JUDGE in grant.scopes, key_id=grant.key_id)
    body = await bodies.read(request, limit)
    return await store_body(collector, signal, body, coding, encoding, sender=sender)


async def store_body(
    collector: State,
    signal: Signal,
    body: bytes,
    coding: str,
    encoding: Encoding,
    *,
    sender: Sender,
) -> Message:
    """Decompress and store a body, and return the response; raises `CollectorError`."""
    limit = collector.settings.max_body_bytes
    with collector.ingest.admission.room(len(body)) as room:
        if not is_plain(coding):
            body = await to_thread.run_sync(
                inflate, body, coding, limit, limiter=collector.inflaters
            )
            room.widen(len(body))
        return await collector.exporter.export(signal, body, encoding, room, sender=sender)


def _encoding(content_type: str) -> Encoding:
    media_type = content_type.split(";", maxsplit=1)[0].strip().lower()
    try:
        return Encoding(media_type)
    except ValueError as exc:
        raise MediaTypeError(
            f"Content-Type {content_type!r}: wanted {Encoding.PROTOBUF} or {Encoding.JSON}"
        ) from exc


def _respond(message: Message, encoding: Encoding, status: int) -> Response:
    write: Callable[[Any], str | bytes] = (
        json_format.MessageToJson if encoding is Encoding.JSON else _to_bytes
    )
    return Response(write(message), status, retry_headers(status), encoding.value)


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped
