"""With content off, a database's file holds no text: the file's bytes are searched."""

import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from backports import zstd
from collector_in_process import http_of
from made_generations import span_of
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otlp_bodies import PROTOBUF, body_of

from collector.contract import Span, SpanEvent, SpanLink, SpanStatus
from collector.settings import Settings
from collector.store import payload

SECRET = "my-mother-has-4-blue-parrots"
START = 1_700_000_000_000_000_000
DIALECTS: dict[str, dict[str, Any]] = {
    "contract": {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm"},
    "older conventions": {"gen_ai.operation.name": "chat", "gen_ai.system": "openai"},
    "OpenInference": {"openinference.span.kind": "LLM"},
    "OpenLLMetry": {"llm.request.type": "chat"},
    "traceAI": {"gen_ai.span.kind": "LLM"},
    "vLLM": {"gen_ai.request.id": "cmpl-1"},
    "SGLang": {"module": "sglang::request"},
    "TGI": {"inference_time": "1s", "validation_time": "1ms"},
    "no dialect": {},
}
TEXTS = (
    *("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"),
    *(
        "gen_ai.prompt",
        "gen_ai.completion",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.content",
    ),
    *("gen_ai.tool.call.arguments", "gen_ai.tool.definitions", "traceloop.entity.input"),
    *("input.value", "output.value", "llm.input_messages.0.message.content", "llm.prompts"),
    *("retrieval.documents.0.document.content", "exception.message", "exception.stacktrace"),
    *("http.url", "url.full", "url.query", "http.target", "db.statement", "error.message"),
    *("mlflow.spanInputs", "langfuse.observation.input", "ai.prompt.messages", "logfire.msg"),
    *("prompt", "completion", "messages", "input", "output", "question", "answer"),
)
EVENTS = (
    *("gen_ai.user.message", "gen_ai.system.message", "gen_ai.assistant.message"),
    *("gen_ai.tool.message", "gen_ai.choice", "gen_ai.content.prompt", "gen_ai.content.completion"),
    *("gen_ai.client.inference.operation.details", "exception", "llm.content.completion.chunk"),
)


def spans() -> list[Span]:
    made = []
    for number, (name, own) in enumerate(DIALECTS.items(), start=1):
        text = {key: f"{SECRET} {key}" for key in TEXTS}
        odd = {"content": SECRET, "gen_ai.prompt": SECRET, "anything": (SECRET,), "body": SECRET}
        made.append(
            span_of(
                number,
                name="llm_request" if name == "vLLM" else f"chat {name}",
                start_unix_ns=START + number,
                end_unix_ns=START + number + 10**9,
                status_message=f"failed on {SECRET}",
                attributes=own | text,
                resource={"service.name": "app", "gen_ai.prompt": SECRET, "input.value": SECRET},
                events=tuple(
                    SpanEvent(name=e, time_unix_ns=START + number, attributes=odd | text)
                    for e in EVENTS
                ),
                links=(SpanLink(trace_id=f"{9:032x}", span_id=f"{9:016x}", attributes=text),),
            )
        )
    return made


def test_no_dialect_leaves_content_in_the_file(database_url: str) -> None:
    """Not in a row, a payload, a shared text, a page that was freed, or the log of writes."""
    with http_of(Settings(database_url=database_url)) as http:
        request = ExportTraceServiceRequest.FromString(body_of(spans()))
        for span in request.resource_spans[0].scope_spans[0].spans:
            span.trace_state = f"app={SECRET}"
            span.links[0].trace_state = f"app={SECRET}"
        answer: httpx.Response = http.post(
            "/v1/traces", content=request.SerializeToString(), headers=PROTOBUF
        )
        assert answer.status_code == 200
        for number in range(1, len(DIALECTS) + 1):
            assert SECRET not in http.get(f"/api/v1/traces/{number:032x}").text
        path = Path(database_url.removeprefix("sqlite:///"))
        for file in path.parent.glob(f"{path.name}*"):
            assert SECRET.encode() not in file.read_bytes(), file.name
        values = list(_values(path))
    assert len(values) > 100
    assert any(b"chat no dialect" in value for value in values)
    unpacked = [plain for value in values for plain in _unpacked(value)]
    assert unpacked, "no payload was read: this looks at nothing"
    for value in (*values, *unpacked):
        assert SECRET.encode() not in value


@pytest.mark.parametrize("captures", [False, True])
def test_names_are_redacted(captures: bool, database_url: str) -> None:
    """A span's and an event's, for some put an address there; with content kept, URLs too."""
    span = span_of(
        name="mail bob@example.com",
        attributes={"url.full": "https://x.example/?to=bob@example.com"},
        events=(SpanEvent(name="sent to bob@example.com", time_unix_ns=START, attributes={}),),
    )
    settings = Settings(database_url=database_url, capture_content=captures)
    with http_of(settings) as http:
        assert http.post("/v1/traces", content=body_of([span]), headers=PROTOBUF).is_success
        shown = http.get(f"/api/v1/traces/{span.trace_id}").text
    assert "bob@" not in shown
    assert shown.count("[redacted:email]") == 2
    assert shown.count("[redacted:email:") == (1 if captures else 0)


@pytest.mark.parametrize("captures", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_type_of_an_error_is_redacted(captures: bool, dialect: str, database_url: str) -> None:
    """Some put the whole message there, as a string or a list, on the span or on its event."""
    quoted = "Refused: bob@example.com"
    span = span_of(
        status=SpanStatus.ERROR,
        attributes=DIALECTS[dialect] | {"error.type": quoted, "draftgate.rollout": "k4"},
        events=(
            SpanEvent(
                name="exception", time_unix_ns=START, attributes={"exception.type": (quoted,)}
            ),
        ),
    )
    listed = replace(span, span_id="2" * 16, attributes=span.attributes | {"error.type": (quoted,)})
    settings = Settings(database_url=database_url, capture_content=captures)
    with http_of(settings) as http:
        body = body_of([span, listed])
        assert http.post("/v1/traces", content=body, headers=PROTOBUF).is_success
        shown = http.get(f"/api/v1/traces/{span.trace_id}").text
    assert "bob@" not in shown
    assert shown.count("Refused: [redacted:email]") >= 4
    path = Path(database_url.removeprefix("sqlite:///"))
    for value in _values(path):
        assert b"bob@" not in value
        assert all(b"bob@" not in plain for plain in _unpacked(value))


def _values(path: Path) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            for row in connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608
                for value in row:
                    yield value if isinstance(value, bytes) else str(value).encode()


def _unpacked(value: bytes) -> list[bytes]:
    plain = []
    with suppress(zstd.ZstdError):
        plain.append(payload.decompress(value))
    return [text for text in plain if text]
