"""JSON under a schema at one and at eight requests in flight, with a draft and without.

From real servers, by the commands that a user gives.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import llamacpp_server
import pytest
import vllm_server
from rollout_files import written
from twenty_prompts import MODELS, requests

from collector.client import Client
from demo.collector_process import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PROMPTS = 12
LOADS = (1, 8)
DRAFT = {"method": "draft_model", "model": str(MODELS / "draft"), "num_speculative_tokens": 4}


WORDS = ["refund", "delivery", "invoice", "other"]
SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {"enum": WORDS},
        "urgent": {"type": "boolean"},
        "next": {"type": "array", "items": {"enum": WORDS}, "minItems": 4, "maxItems": 6},
        "by": {"type": "object", "properties": {"team": {"enum": WORDS}}, "required": ["team"]},
    },
    "required": ["topic", "urgent", "next", "by"],
    "additionalProperties": False,
}
"""Of finite length, so that a tiny model's answers end."""


def write_rollout(folder: Path, engine: str, roots: tuple[str, str]) -> Path:
    """Write a rollout of requests for JSON under the schema."""
    schema = {"type": "json_schema", "json_schema": {"name": "ticket", "schema": SCHEMA}}
    asked = [
        {"id": f"p{at}", "cohort": "json", "prompt": request.messages[0].text[:200]}
        | {"response_format": schema}
        for at, request in enumerate(requests()[:PROMPTS])
    ]
    routes = [{"engine": engine, "url": f"{root}/v1", "model": "served"} for root in roots]
    rollout = {
        "rollout": "json",
        "baseline": routes[0],
        "candidate": routes[1],
        "sampling": {"max_tokens": 200},
        "load": {"warmup": 1},
    }
    return written(folder, rollout, asked)


def draftgate(collector: str, *arguments: str) -> str:
    """Run a command; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "draftgate", *arguments],
        env=os.environ | {"DRAFTGATE_COLLECTOR_URL": collector},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1, 3), done.stderr
    return done.stdout


def assert_answers_hold(folder: Path, engine: str, roots: tuple[str, str]) -> None:
    """Every answer is valid, on both arms and under both loads."""
    file = write_rollout(folder, engine, roots)
    loads, names = ",".join(map(str, LOADS)), [f"json-c{load}" for load in LOADS]
    with running(folder / "d.db", folder / "log") as collector:
        draftgate(collector, "sweep", str(file), "--concurrency", loads)
        draftgate(collector, "evaluate", *names, "--evaluator", "json-schema")
        verdict = json.loads(draftgate(collector, "gate", *names, "--json"))
        with Client(collector) as client:
            for name in names:
                made = list(client.generations(name))
                assert [one.error_type for one in made] == [None] * 2 * PROMPTS
                assert {score.value for score in client.scores(name)} == {1.0}
    rows = {
        tuple(row["in_flight"] or ()): row
        for row in verdict["structured_answers"]
        if row["cohort"] == "json"
    }
    for arm in ("baseline", "candidate"):
        assert rows[()][arm]["judged"] == PROMPTS * len(LOADS)
        assert rows[1, 1][arm]["judged"] >= PROMPTS
        # Answers that end together leave many slots, above all on a busy machine.
        many = [row for load, row in rows.items() if load and load[0] >= 4]
        assert sum(row[arm]["judged"] for row in many) >= PROMPTS / 4
    (drafted,) = (
        row["draft_tokens"]
        for row in verdict["acceptance"]
        if (row["arm"], row["cohort"]) == ("candidate", "json")
    )
    assert drafted > 0


def test_llamacpps_grammar_holds_under_load(tmp_path: Path, gguf_pair: dict[str, Path]) -> None:
    """The grammar that it makes of a JSON schema, with a draft and without."""
    target, draft = gguf_pair["target"], gguf_pair["draft"]
    with (
        llamacpp_server.serving(target, slots=max(LOADS)) as plain,
        llamacpp_server.serving(target, draft=draft, slots=max(LOADS)) as drafted,
    ):
        assert_answers_hold(tmp_path, "llamacpp", (plain, drafted))


@pytest.mark.vllm
def test_vllms_structured_output_holds_under_load(tmp_path: Path) -> None:
    """On a CPU, with a draft and without."""
    with (
        vllm_server.serving(MODELS / "target") as plain,
        vllm_server.serving(MODELS / "target", speculation=DRAFT) as drafted,
    ):
        assert_answers_hold(tmp_path, "vllm", (plain, drafted))
