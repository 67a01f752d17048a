"""`POST /v1/traces`: stored rows, responses and refusals."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
from backports import zstd
from collector_in_process import http_of
from google.rpc.status_pb2 import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_generations import generation_of
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from otlp_bodies import PROTOBUF, body_of, json_of

from collector.client import Client
from collector.contract import Arm, Content, Generation, Span, attributes, encode
from collector.settings import Settings

JSON = {"Content-Type": "application/json; charset=utf-8"}
CONTENT = Content(
    input_messages='[{"role":"user","parts":[{"type":"text","content":"hi ☃"}]}]',
    output_messages='[{"role":"assistant","parts":[]}]',
    context=("passage",),
    reference="hello",
    output_schema='{"type":"object"}',
)


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_stock_sdk_exporter_is_stored_whole(
    compression: Compression, serve: Callable[..., Any], database_url: str
) -> None:
    """Spans of an unmodified OpenTelemetry SDK become generations, and their trace stays whole."""
    server = serve(database_url)
    exporter = OTLPSpanExporter(endpoint=f"{server.url}/v1/traces", compression=compression)
    provider = TracerProvider(resource=Resource({"service.name": "agent"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("scope")
    wanted = {
        attributes.GEN_AI_OPERATION_NAME: "chat",
        attributes.GEN_AI_REQUEST_MODEL: "m",
        attributes.DRAFTGATE_ROLLOUT: "r",
        attributes.DRAFTGATE_ARM: "baseline",
        attributes.GEN_AI_USAGE_OUTPUT_TOKENS: 3,
        attributes.GEN_AI_RESPONSE_FINISH_REASONS: ["stop"],
    }
    with tracer.start_as_current_span("agent") as parent:
        tracer.start_span(
            "chat m", attributes=wanted, start_time=1, kind=trace.SpanKind.CLIENT
        ).end(5)
    provider.shutdown()
    trace_id = trace.format_trace_id(parent.get_span_context().trace_id)
    with Client(server.url) as client:
        (generation,) = client.generations("r")
        spans = {span.name: span for span in client.trace(trace_id)}
    assert generation == Generation(
        trace_id=trace_id,
        span_id=spans["chat m"].span_id,
        start_unix_ns=1,
        end_unix_ns=5,
        request_model="m",
        rollout="r",
        arm=Arm.BASELINE,
        output_tokens=3,
        finish_reasons=("stop",),
        service_name="agent",
    )
    assert spans["chat m"].parent_span_id == spans["agent"].span_id
    assert spans["agent"].scope_name == "scope"


def test_both_encodings_store_the_same_rows(tmp_path: Path, odd_span: Span) -> None:
    """Protobuf, JSON and their compressed forms end in the same spans and generations."""
    spans = (odd_span, encode(generation_of(1, content=CONTENT)), encode(generation_of(2)))
    stored = []
    for number, (headers, body) in enumerate(
        [
            (PROTOBUF, body_of(spans)),
            (JSON, json_of(spans)),
            (PROTOBUF | {"Content-Encoding": "gzip"}, gzip.compress(body_of(spans))),
            (JSON | {"Content-Encoding": "GZIP"}, gzip.compress(json_of(spans))),
            (PROTOBUF | {"Content-Encoding": "identity"}, body_of(spans)),
            (PROTOBUF | {"Content-Encoding": "deflate"}, zlib.compress(body_of(spans))),
            (JSON | {"Content-Encoding": "zstd"}, zstd.compress(json_of(spans))),
        ]
    ):
        database_url = f"sqlite:///{tmp_path / str(number)}.db"
        with http_of(Settings(database_url=database_url, capture_content=True)) as http:
            response = http.post("/v1/traces", content=body, headers=headers)
            assert response.status_code == 200
            assert response.headers["content-type"] == headers["Content-Type"].partition(";")[0]
            stored.append(everything(http, [span.trace_id for span in spans]))
    assert stored == [stored[0]] * 7
    assert [len(part) for part in stored[0]] == [2, 3]


def everything(http: httpx.Client, trace_ids: Iterable[str]) -> tuple[Any, Any]:
    generations = http.get("/api/v1/generations?rollout=k4&content=true").json()["generations"]
    return generations, [http.get(f"/api/v1/traces/{id_}").json()["spans"] for id_ in trace_ids]


def test_duplicates_are_stored_once_and_never_changed(http: httpx.Client) -> None:
    """A span sent again, in the same request or later, leaves the first as it is."""
    first = generation_of(1, content=CONTENT)
    again = generation_of(1, output_tokens=99)
    later = generation_of(2)
    for sent in ([first, again], [again, later, first], [later]):
        body = body_of([encode(generation) for generation in sent])
        assert http.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
    with_text = http.get("/api/v1/generations?rollout=k4&content=true").json()["generations"]
    assert [found["output_tokens"] for found in with_text] == [11, 11]
    assert [found["content"] is not None for found in with_text] == [True, False]
    assert len(http.get(f"/api/v1/traces/{first.trace_id}").json()["spans"]) == 1


def test_a_span_that_cannot_be_stored_is_counted_in_the_answer(http: httpx.Client) -> None:
    """The rest is stored; the answer names the reasons, in the request's own encoding."""
    reason = "trace_id: wanted 16 bytes (32 hexadecimal digits), not all zero"
    spans = [encode(generation_of(n)) for n in (0, 0, 1)]
    answer = http.post("/v1/traces", content=body_of(spans), headers=PROTOBUF)
    parsed = ExportTraceServiceResponse.FromString(answer.content)
    assert answer.status_code == 200
    assert parsed.partial_success.rejected_spans == 2
    assert parsed.partial_success.error_message == f"2 × {reason}"
    answer = http.post("/v1/traces", content=json_of(spans), headers=JSON)
    assert answer.json() == {
        "partialSuccess": {"rejectedSpans": "2", "errorMessage": f"2 × {reason}"}
    }
    assert len(http.get("/api/v1/generations?rollout=k4").json()["generations"]) == 1


def test_a_good_export_is_answered_with_no_partial_success(http: httpx.Client) -> None:
    """Nothing rejected means an empty message; an empty request is a good one."""
    spans = [encode(generation_of(1))]
    assert http.post("/v1/traces", content=body_of(spans), headers=PROTOBUF).content == b""
    assert http.post("/v1/traces", content=json_of(spans), headers=JSON).json() == {}
    assert http.post("/v1/traces", content=b"", headers=PROTOBUF).status_code == 200
    assert http.post("/v1/traces", content=b"{}", headers=JSON).status_code == 200


@pytest.mark.parametrize(
    ("headers", "body", "status", "code", "words"),
    [
        (PROTOBUF, b"garbage", 400, 3, "no ExportTraceServiceRequest in protobuf"),
        (JSON, b"garbage", 400, 3, "the body is no OTLP JSON: Expecting value"),
        (JSON, b"", 400, 3, "the body is no OTLP JSON: Expecting value"),
        (JSON, b'{"a":NaN', 400, 3, "the body is no OTLP JSON"),
        (PROTOBUF | {"Content-Encoding": "gzip"}, b"garbage", 400, 3, "gzip body is garbled"),
        (
            PROTOBUF | {"Content-Encoding": "gzip"},
            gzip.compress(b"x" * 99, mtime=0)[:-9],
            400,
            3,
            "gzip body is truncated",
        ),
        (PROTOBUF | {"Content-Encoding": "br"}, b"", 415, 3, "'br': wanted one of gzip, deflate"),
        (
            PROTOBUF | {"Content-Encoding": "gzip, gzip"},
            gzip.compress(gzip.compress(b"", mtime=0), mtime=0),
            415,
            3,
            "Content-Encoding 'gzip, gzip': wanted one of gzip, deflate, zstd, or identity",
        ),
        ({"Content-Type": "text/plain"}, b"", 415, 3, "Content-Type 'text/plain': wanted"),
        ({}, b"", 415, 3, "Content-Type '': wanted application/x-protobuf or application/json"),
        (PROTOBUF, bytes(2000), 413, 8, "larger than 1000 bytes; send smaller batches"),
        (
            PROTOBUF | {"Content-Encoding": "gzip"},
            gzip.compress(bytes(500_000), mtime=0),
            413,
            8,
            "larger than 1000 bytes",
        ),
        (
            PROTOBUF | {"Content-Encoding": "gzip"},
            gzip.compress(bytes(600), mtime=0) * 2,
            413,
            8,
            "larger than 1000 bytes",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(
    headers: dict[str, str], body: bytes, status: int, code: int, words: str, database_url: str
) -> None:
    """A google.rpc.Status in the request's encoding, or in JSON where that is unknown."""
    with http_of(Settings(database_url=database_url, max_body_bytes=1000)) as http:
        answer = http.post("/v1/traces", content=body, headers=headers)
    assert answer.status_code == status
    if headers == {} or headers["Content-Type"] != PROTOBUF["Content-Type"]:
        assert answer.headers["content-type"] == "application/json"
        found = (answer.json()["code"], answer.json()["message"])
    else:
        assert answer.headers["content-type"] == "application/x-protobuf"
        message = Status.FromString(answer.content)
        found = (message.code, message.message)
    assert found[0] == code
    assert words in found[1]
    assert "\n" not in found[1]


def test_a_body_without_a_length_is_bounded_too(database_url: str) -> None:
    """A chunked body is refused once it passes the limit."""
    with http_of(Settings(database_url=database_url, max_body_bytes=1000)) as http:
        chunks = (bytes(300) for _ in range(9))
        answer = http.post("/v1/traces", content=chunks, headers=PROTOBUF)
    assert answer.status_code == 413


def test_any_body_is_answered_below_500(http: httpx.Client) -> None:
    """Good bodies with bytes changed, in both encodings, gzipped or not, never make a 5xx."""
    spans = [encode(generation_of(1, content=CONTENT))]

    @settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def send(data: st.DataObject) -> None:
        headers, write = data.draw(st.sampled_from([(PROTOBUF, body_of), (JSON, json_of)]))
        body = bytearray(write(spans))
        for _ in range(data.draw(st.integers(0, 4))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
        if data.draw(st.booleans()):
            headers, body = headers | {"Content-Encoding": "gzip"}, bytearray(gzip.compress(body))
            body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(0, 1))
        answer = http.post("/v1/traces", content=bytes(body), headers=headers)
        assert answer.status_code in (200, 400)
        document = http.get("/api/v1/traces/00000000000000000000000000000001")
        assert document.status_code in (200, 404)
        json.loads(document.content)

    send()
