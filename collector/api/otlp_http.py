"""OTLP over HTTP: `POST /v1/traces`."""

from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response
from google.protobuf import json_format
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.requests import ClientDisconnect

from collector.api import bodies
from collector.api.problems import MediaTypeError, retry_headers, status_of
from collector.api.state import Collector, State
from collector.content import ContentPolicy
from collector.errors import CollectorError
from collector.otlp import Encoding, decode_traces
from collector.store import Batch, prepare

router = APIRouter(tags=["otlp"])

_GRPC_CODES = {
    HTTPStatus.BAD_REQUEST: 3,  # INVALID_ARGUMENT
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 8,  # RESOURCE_EXHAUSTED
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 3,
    HTTPStatus.SERVICE_UNAVAILABLE: 14,  # UNAVAILABLE
}
_INTERNAL = 13
_REASONS_SHOWN = 5
_ANY_BODY = {
    encoding.value: {"schema": {"type": "string", "format": "binary"}} for encoding in Encoding
}


class _Prepared(NamedTuple):
    batch: Batch
    rejected: tuple[str, ...]


@router.post(
    "/v1/traces",
    response_class=Response,
    responses={
        200: {"description": "Stored; `partialSuccess` counts what was rejected."},
        400: {"description": "The body cannot be decoded (google.rpc.Status)."},
        413: {"description": "The body is too large (google.rpc.Status)."},
        415: {"description": "The body's type or coding is not read (google.rpc.Status)."},
        503: {"description": "It cannot be stored now; see Retry-After (google.rpc.Status)."},
    },
    openapi_extra={"requestBody": {"required": True, "content": _ANY_BODY}},
)
async def export_traces(request: Request, collector: Collector) -> Response:
    """Store the spans of an OTLP export; an answer of 200 means that they are durable.

    Idempotent by trace id and span id: a span that is known already is left as it is. Protobuf or
    JSON, as the content type says; gzip is understood.
    """
    answer_as = Encoding.JSON
    try:
        answer_as = _encoding(request.headers.get("content-type", ""))
        rejected = await _store(request, collector, answer_as)
    except CollectorError as exc:
        status = status_of(exc)
        message = Status(code=_GRPC_CODES.get(status, _INTERNAL), message=str(exc))
        return _respond(message, answer_as, status)
    except ClientDisconnect:
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # there is nobody to read it
    return _respond(_success(rejected), answer_as, HTTPStatus.OK)


async def _store(request: Request, collector: State, encoding: Encoding) -> tuple[str, ...]:
    """Store the request's spans and return why some were rejected."""
    limit = collector.settings.max_body_bytes
    coding = request.headers.get("content-encoding", "")
    sent = await bodies.read(request, limit)
    body = await to_thread.run_sync(bodies.inflate, sent, coding, limit, limiter=collector.decoders)
    with collector.ingest.room(len(body)):
        prepared = await to_thread.run_sync(
            _prepare, body, encoding, collector.content, limiter=collector.decoders
        )
        collector.counters.received(
            len(prepared.batch.spans),
            prepared.rejected,
            (flag for rows in prepared.batch.spans for flag in rows.quality),
        )
        if prepared.batch.spans:
            await collector.ingest.write(prepared.batch)
    return prepared.rejected


def _prepare(body: bytes, encoding: Encoding, content: ContentPolicy) -> _Prepared:
    received = decode_traces(body, encoding)
    return _Prepared(Batch(spans=prepare(received.spans, content)), received.rejected)


def _encoding(content_type: str) -> Encoding:
    media_type = content_type.split(";", maxsplit=1)[0].strip().lower()
    try:
        return Encoding(media_type)
    except ValueError as exc:
        raise MediaTypeError(
            f"Content-Type {content_type!r}: wanted {Encoding.PROTOBUF} or {Encoding.JSON}"
        ) from exc


def _success(rejected: tuple[str, ...]) -> ExportTraceServiceResponse:
    response = ExportTraceServiceResponse()
    if rejected:
        reasons = Counter(rejected).most_common(_REASONS_SHOWN)
        response.partial_success.rejected_spans = len(rejected)
        response.partial_success.error_message = "; ".join(
            f"{count} × {reason}" for reason, count in reasons
        )
    return response


def _respond(message: Message, encoding: Encoding, status: int) -> Response:
    write: Callable[[Any], str | bytes] = (
        json_format.MessageToJson if encoding is Encoding.JSON else _to_bytes
    )
    return Response(write(message), status, retry_headers(status), encoding.value)


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()  # type: ignore[no-any-return]  # the library is untyped
