"""The HTTP API beyond the client: raw documents, problems, OpenAPI, health."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from collector_in_process import http_of
from made_generations import generation_of
from otlp_bodies import PROTOBUF, body_of

from collector.client.asgi_transport import InProcessTransport
from collector.contract import Arm, encode, to_document
from collector.serving.app import create_app
from collector.settings import Settings

JSON = {"Content-Type": "application/json"}


SCORE = {
    "trace_id": "0" * 31 + "1",
    "span_id": "0" * 15 + "1",
    "metric": "m",
    "evaluator": "e",
    "version": "1",
    "value": 0.5,
}


def test_documents_of_a_rollout(http: httpx.Client) -> None:
    """Each listing is the contract's document of its records, in an object under the subject."""
    generation = generation_of(1, arm=Arm.BASELINE)
    http.post("/v1/traces", content=body_of([encode(generation)]), headers=PROTOBUF)
    http.post("/api/v1/scores", json=[SCORE])
    document = to_document(generation)
    absent = ("label", "explanation", "unscored_reason", "latency_s", "cost_usd", "spans", "key_id")
    score = SCORE | dict.fromkeys(absent)
    query = {"rollout": "k4"}
    assert http.get("/api/v1/generations", params=query).json() == {
        "generations": [document],
        "next": None,
    }
    assert http.get("/api/v1/scores", params=query).json() == {"scores": [score], "next": None}
    assert http.get("/api/v1/pairs", params=query).json() == {
        "pairs": [
            {
                "rollout": "k4",
                "prompt_id": "p1",
                "repeat": 0,
                "cohort": "chat",
                "baseline": document,
                "candidate": None,
                "baseline_scores": [score],
                "candidate_scores": [],
            }
        ],
        "next": None,
    }
    assert http.get("/api/v1/rollouts").json() == {
        "rollouts": [
            {
                "rollout": "k4",
                "first_start_unix_ns": generation.start_unix_ns,
                "last_end_unix_ns": generation.end_unix_ns,
                "baseline_generations": 1,
                "candidate_generations": 0,
                "pairs": 0,
                "cohorts": ["chat"],
                "quality_flagged": 0,
                "spec_draft_tokens": 10,
            }
        ]
    }


def test_an_unknown_rollout_is_a_problem_that_names_the_known(http: httpx.Client) -> None:
    """The whole document is RFC 9457's; with nothing stored it says what to do."""
    problem = {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "no rollout 'x'; known rollouts: none yet: run one, or post its traces",
    }
    for path in (
        "/api/v1/rollouts/x/summary",
        "/api/v1/generations?rollout=x",
        "/api/v1/pairs?rollout=x",
        "/api/v1/scores?rollout=x",
        "/api/v1/verdicts?rollout=x",
    ):
        answer = http.get(path)
        assert (answer.status_code, answer.json()) == (404, problem)
        assert answer.headers["content-type"] == "application/problem+json"
    spans = [encode(generation_of(n, rollout=f"r{n}")) for n in (2, 1)]
    http.post("/v1/traces", content=body_of(spans), headers=PROTOBUF)
    detail = http.get("/api/v1/pairs?rollout=x").json()["detail"]
    assert detail == "no rollout 'x'; known rollouts: 'r1', 'r2'"


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/nowhere", 404, "Not Found"),
        ("/v1/traces", 405, "Method Not Allowed"),
        ("/api/v1/pairs", 422, "query.rollout: Field required"),
        ("/api/v1/generations?rollout=r&arm=x", 422, "query.arm: Input should be 'baseline' or"),
        ("/api/v1/generations?rollout=r&limit=0", 422, "query.limit: Input should be greater"),
        ("/api/v1/generations?rollout=r&after=W10", 400, "after='W10': is not a cursor"),
        ("/api/v1/generations?rollout=r&after=é", 400, "after='é': is not a cursor"),
        (
            "/api/v1/generations?rollout=r&after=WzkyMjMzNzIwMzY4NTQ3NzU4MDhd",
            400,
            "is not a cursor",
        ),
        ("/api/v1/verdicts?limit=x", 422, "query.limit: Input should be a valid integer"),
        ("/api/v1/traces/1", 422, "path.trace_id: String should match pattern"),
    ],
)
def test_a_bad_request_is_a_problem(
    path: str, status: int, detail: str, http: httpx.Client
) -> None:
    """Validation, routing and cursors all answer with problem details."""
    answer = http.get(path)
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem["status"]) == (status, status)
    assert set(problem) == {"type", "title", "status", "detail"}
    assert detail in problem["detail"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "the body is not JSON: Expecting value"),
        (b"[" * 100_000, "the body is not JSON: "),
        (b'"\\ud800"', "the body is not JSON: 'utf-8' codec can't encode"),
        (b"{}", "wanted a JSON list of scores"),
        ([SCORE | {"value": 2}], "[0]: a score's value lies in [0, 1], got 2"),
        ([SCORE, SCORE | {"value": None}], "[1]: a score has either a value or the reason"),
        ([SCORE | {"value": "1"}], "[0].value: wanted float, got '1'"),
        ([SCORE | {"extra": 1}], "[0].extra: unknown key in Score"),
        ([{}], "[0].trace_id: missing key of Score"),
        ([SCORE | {"trace_id": "A" * 32}], "[0].trace_id: wanted [0-9a-f]{32} (lower-case"),
        ([SCORE | {"span_id": "1"}], "[0].span_id: wanted [0-9a-f]{16} (lower-case"),
        (b'[{"value": NaN}]', "[0].value: wanted a finite number, got nan"),
    ],
)
def test_scores_that_are_none_are_refused_whole(body: Any, detail: str, http: httpx.Client) -> None:
    """The problem names the score and the key; none of the list is stored."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = http.post("/api/v1/scores", content=content, headers=JSON)
    assert answer.status_code == 400
    assert detail in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"[]", "Verdict: wanted an object, got []"),
        (b'{"outcome": "perhaps"}', "outcome: wanted one of pass, fail, inconclusive, got"),
        (b"{}", "rollout: missing key of Verdict"),
    ],
)
def test_a_verdict_that_is_none_is_refused(body: bytes, detail: str, http: httpx.Client) -> None:
    """The problem names the key."""
    answer = http.post("/api/v1/verdicts", content=body, headers=JSON)
    assert answer.status_code == 400
    assert detail in answer.json()["detail"]


def test_posted_bodies_are_bounded(database_url: str) -> None:
    """The API's bodies obey the same limit as OTLP's."""
    with http_of(Settings(database_url=database_url, max_body_bytes=100)) as http:
        answer = http.post("/api/v1/scores", json=[SCORE])
    assert answer.status_code == 413
    assert "larger than 100 bytes; send smaller batches" in answer.json()["detail"]


def test_openapi_describes_every_route_and_resolves(http: httpx.Client) -> None:
    """Every path is there, every reference leads somewhere, every operation has a summary."""
    document = http.get("/openapi.json").json()
    assert {
        (path, method) for path, methods in document["paths"].items() for method in methods
    } == {
        ("/v1/logs", "post"),
        ("/v1/metrics", "post"),
        ("/v1/traces", "post"),
        ("/api/v1/rollouts", "get"),
        ("/api/v1/rollouts/{rollout}/summary", "get"),
        ("/api/v1/rollouts/{rollout}/timeseries", "get"),
        ("/api/v1/rollouts/{rollout}/switch", "get"),
        ("/api/v1/rollouts/{rollout}/switch", "post"),
        ("/api/v1/leases", "post"),
        ("/api/v1/leases/{lease_id}", "delete"),
        ("/api/v1/leases/{lease_id}/renewal", "post"),
        ("/api/v1/rollouts/{rollout}/ramp", "get"),
        ("/api/v1/rollouts/{rollout}/ramp", "post"),
        ("/api/v1/rollouts/{rollout}/watches", "get"),
        ("/api/v1/rollouts/{rollout}/watches", "post"),
        ("/api/v1/generations", "get"),
        ("/api/v1/regressions", "get"),
        ("/api/v1/unpaired", "get"),
        ("/api/v1/pairs", "get"),
        ("/api/v1/traces/{trace_id}", "get"),
        ("/api/v1/samples", "get"),
        ("/api/v1/scores", "get"),
        ("/api/v1/scores", "post"),
        ("/api/v1/feedback", "get"),
        ("/api/v1/feedback", "post"),
        ("/api/v1/verdicts", "get"),
        ("/api/v1/verdicts", "post"),
        ("/api/v1/rollouts/{rollout}/history", "get"),
        ("/api/v1/rollouts/{rollout}/verdicts", "get"),
        ("/api/v1/rollouts/{rollout}/policies", "post"),
        ("/api/v1/rollouts/{rollout}/decision", "get"),
        ("/api/v1/rollouts/{rollout}/decision", "post"),
        ("/api/v1/collector", "get"),
        ("/metrics", "get"),
        ("/healthz", "get"),
        ("/readyz", "get"),
    }
    schemas = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas
    post = document["paths"]["/api/v1/scores"]["post"]["requestBody"]["content"]
    assert post["application/json"]["schema"]["items"] == {"$ref": "#/components/schemas/Score"}
    assert set(schemas["Score"]["required"]) == {
        *("trace_id", "span_id", "metric", "evaluator", "version")
    }


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_health_and_readiness(database_url: str, tmp_path: Path) -> None:
    """A process that answers is healthy; it is ready as long as it can read its database."""
    app = create_app(Settings(database_url=database_url))
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as http:
        assert http.get("/healthz").json() == {"status": "ok"}
        assert http.get("/readyz").json() == {"status": "ok"}
        app.state.collector.store.close()
        for file in tmp_path.iterdir():
            file.unlink()
        assert http.get("/healthz").status_code == 200
        answer = http.get("/readyz")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "no such table" in answer.json()["detail"]
