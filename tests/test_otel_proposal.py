"""The proposal to OpenTelemetry: its model, its reference scenario, and its switch."""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from collector.contract import Generation, Speculation, attributes, decode, encode
from collector.contract.proposed import PROPOSED
from engine_adapter.recording.span import span_of

PAGE = (Path(__file__).parent.parent / "docs" / "otel-proposal.md").read_text()
REGISTRY, SPANS = (yaml.safe_load(b) for b in re.findall(r"```yaml\n(.*?)```", PAGE, re.S))
(SCENARIO,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
NAMES = {attribute["key"] for attribute in REGISTRY["attributes"]}
SENTENCE = {"type": "string", "pattern": r"^[A-Z`][^\n]*\.\n?$"}
MODEL = {
    "type": "object",
    "required": ["file_format"],
    "additionalProperties": False,
    "properties": {
        "file_format": {"const": "definition/2"},
        "attributes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "type", "brief", "examples", "stability"],
                "additionalProperties": False,
                "properties": {
                    "key": {"pattern": r"^gen_ai(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)+$"},
                    "type": {"enum": ["int", "double", "string", "boolean"]},
                    "brief": SENTENCE,
                    "note": {"type": "string"},
                    "examples": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
                    "stability": {"const": "development"},
                },
            },
        },
        "attribute_groups": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "visibility", "attributes"],
                "additionalProperties": False,
                "properties": {
                    "id": {"pattern": r"^attributes\.gen_ai\.[a-z_]+$"},
                    "visibility": {"enum": ["internal", "public"]},
                    "attributes": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["ref", "requirement_level"],
                            "additionalProperties": False,
                            "properties": {
                                "ref": {"type": "string"},
                                "requirement_level": {
                                    "type": "object",
                                    "required": ["recommended"],
                                    "additionalProperties": False,
                                    "properties": {"recommended": SENTENCE},
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The conventions' form, as far as the proposal uses it."""


@pytest.mark.parametrize("document", [REGISTRY, SPANS], ids=["registry", "spans"])
def test_the_model_has_the_conventions_form(document: Any) -> None:
    """Keys, types, sentences, and a stability for each attribute."""
    jsonschema_rs.validate(MODEL, document)


@pytest.mark.parametrize("name", ["key", "brief", "stability"])
def test_a_model_that_lacks_something_is_refused(name: str) -> None:
    """The form above can say no."""
    broken = [{k: v for k, v in one.items() if k != name} for one in REGISTRY["attributes"]]
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(MODEL, {**REGISTRY, "attributes": broken})


def test_the_names_are_the_codes() -> None:
    """Proposed, sent and read are the same four; no name is the namespace of another."""
    assert set(PROPOSED.values()) == NAMES
    (group,) = SPANS["attribute_groups"]
    assert [one["ref"] for one in group["attributes"]] == [
        one["key"] for one in REGISTRY["attributes"]
    ]
    assert not [a for a in NAMES for b in NAMES if b.startswith(f"{a}.")]
    assert len({name.replace(".", "_") for name in NAMES}) == len(NAMES)


def test_the_examples_obey_the_laws() -> None:
    """Taken together, as one response's."""
    given = {one["key"]: one["examples"][0] for one in REGISTRY["attributes"]}
    decoded = decode(_with(given))
    assert not [flag for flag in decoded.generation.quality if flag.startswith("counts:")]
    steps, drafted, accepted, k = (given[one] for one in PROPOSED.values())
    assert accepted <= min(drafted, steps * k)


GENERATION = Generation(
    trace_id="1" * 32,
    span_id="2" * 16,
    start_unix_ns=10**18,
    end_unix_ns=10**18 + 10**9,
    speculation=Speculation(
        method="eagle", steps=4, draft_tokens=12, accepted_tokens=7, num_speculative_tokens=3
    ),
)
COUNTS = (4, 12, 7, 3)


def test_the_switch_sends_both_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by default; on, nothing that was sent before is lost."""
    monkeypatch.delenv("DRAFTGATE_PROPOSED_CONVENTIONS", raising=False)
    plain = span_of(GENERATION)
    assert plain == encode(GENERATION)
    monkeypatch.setenv("DRAFTGATE_PROPOSED_CONVENTIONS", "true")
    sent = span_of(GENERATION).attributes
    assert plain.attributes.items() <= sent.items()
    assert tuple(sent[name] for name in PROPOSED.values()) == COUNTS


def test_what_is_not_known_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent is not 0."""
    monkeypatch.setenv("DRAFTGATE_PROPOSED_CONVENTIONS", "true")
    assert not NAMES & span_of(replace(GENERATION, speculation=None)).attributes.keys()
    nothing = Speculation(draft_tokens=0, accepted_tokens=0)
    sent = span_of(replace(GENERATION, speculation=nothing)).attributes
    assert {name for name in NAMES if name in sent} == {
        attributes.GEN_AI_SPECULATIVE_DECODING_DRAFTED_TOKENS,
        attributes.GEN_AI_SPECULATIVE_DECODING_ACCEPTED_TOKENS,
    }


VLLM_COUNTS = {
    "num_spec_steps": 4,
    "num_draft_tokens": 12,
    "num_accepted_draft_tokens": 7,
    "num_spec_tokens": 3,
}


class _Vllm(BaseHTTPRequestHandler):
    """Answers a chat completion as vLLM with `--per-request-spec-decode-metrics summary`."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "Scattering."}
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "target",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21},
            "metrics": {"speculative_decoding": VLLM_COUNTS},
        }
        answer = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def vllm() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Vllm)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Give the exporter of a tracer provider that the scenario uses."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def test_the_reference_scenario_runs(vllm: str, exported: InMemorySpanExporter) -> None:
    """As printed, against a server that answers as vLLM does; the collector reads its span."""
    scope: dict[str, Any] = {}
    exec(SCENARIO.replace("http://localhost:8001/v1", vllm), scope)  # noqa: S102  # our own page
    scope["client"].close()
    (span,) = exported.get_finished_spans()
    assert span.attributes is not None
    assert tuple(span.attributes[name] for name in PROPOSED.values()) == COUNTS
    assert span.kind is trace.SpanKind.CLIENT
    speculation = decode(_with(dict(span.attributes))).generation.speculation
    assert speculation is not None
    found = (
        *(speculation.steps, speculation.draft_tokens),
        *(speculation.accepted_tokens, speculation.num_speculative_tokens),
    )
    assert found == COUNTS


def test_a_broken_law_is_flagged_by_either_name() -> None:
    """More accepted than drafted, and a count that is no number."""
    drafted, accepted = list(PROPOSED.values())[1:3]
    for given in ({drafted: 3, accepted: 4}, {drafted: "many", accepted: 1}):
        quality = decode(_with(given)).generation.quality
        assert [flag for flag in quality if flag.startswith("counts:")]


def _with(given: dict[str, Any]) -> Any:
    span = encode(replace(GENERATION, speculation=None))
    return replace(span, attributes={**span.attributes, **given})
