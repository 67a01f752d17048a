"""Client requests that post spans and read traces and engine samples."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final
from urllib.parse import quote

import httpx
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.client.connection import PROTOBUF, ApiResource
from collector.client.otlp_json import traces
from collector.contract import AttributeValue, EngineSample, Generation, Span
from collector.contract.span_json import span_from_document
from collector.errors import ClientError
from collector.nouns import counted

_SPANS_A_POST: Final = 500


class TelemetryRequests(ApiResource):
    """Spans, traces and engine samples."""

    def post_traces(
        self, body: bytes, *, content_type: str = PROTOBUF, gzipped: bool = False
    ) -> None:
        """Store the spans of an OTLP body; on return they are durable.

        `gzipped`: whether the body is. Raises `ClientError` if any span was rejected.
        """
        headers = {"Content-Type": content_type}
        if gzipped:
            headers["Content-Encoding"] = "gzip"
        response = self._connection.send("POST", "/v1/traces", content=body, headers=headers)
        rejected, reason = self._partial_success(response)
        if rejected:
            raise ClientError(f"{response.url}: rejected {counted(rejected, 'span')}: {reason}")

    def post_generations(
        self,
        generations: Iterable[Generation],
        resource: Mapping[str, AttributeValue] | None = None,
    ) -> None:
        """Store generations as spans of a resource; each once, however often it is posted."""
        left = iter(generations)
        while batch := list(islice(left, _SPANS_A_POST)):
            self.post_traces(traces(batch, resource), content_type="application/json")

    def trace(self, trace_id: str) -> tuple[Span, ...]:
        """Return every stored span of a trace, ordered by start."""
        body = self._connection.get(f"/api/v1/traces/{quote(trace_id, safe='')}")
        try:
            return tuple(span_from_document(document) for document in body["spans"])
        except (KeyError, TypeError, ValueError) as exc:
            raise self._connection.unexpected_answer(exc) from exc

    def samples(
        self,
        metric: str,
        *,
        service_name: str | None = None,
        since_unix_ns: int = 0,
        until_unix_ns: int | None = None,
    ) -> Iterator[EngineSample]:
        """Yield a metric's engine samples from `since` to before `until`, by time, page by page."""
        query = {
            "metric": metric,
            "service_name": service_name,
            "since_unix_ns": since_unix_ns,
            "until_unix_ns": until_unix_ns,
        }
        return self._connection.pages(EngineSample, "/api/v1/samples", query, "samples")

    def _partial_success(self, response: httpx.Response) -> tuple[int, str]:
        if response.headers.get("content-type", "").startswith("application/json"):
            partial = self._connection.json(response).get("partialSuccess", {})
            return int(partial.get("rejectedSpans", 0)), partial.get("errorMessage", "")
        message = ExportTraceServiceResponse()
        try:
            message.ParseFromString(response.content)
        except DecodeError as exc:
            raise self._connection.unexpected_answer(exc) from exc
        return message.partial_success.rejected_spans, message.partial_success.error_message
