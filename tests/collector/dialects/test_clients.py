"""Stock instrumentations as clients of a real `draftgate serve`: what arrives of them.

Each runs in a process and an environment of its own, for they patch the same library.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import client_environments
import fake_openai
import pytest
from commands import run_to_end
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Generation, Span, Speculation
from draftgate.commands import app

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "telemetry.md"
SPECULATION = Speculation(num_speculative_tokens=4)
ASKED = [
    {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
    {"role": "user", "parts": [{"type": "text", "content": "capital of France?"}]},
]
ANSWERED = [{"role": "assistant", "parts": [{"type": "text", "content": "Paris it is"}]}]


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    """Serve a model that always answers the same."""
    with fake_openai.running() as url:
        yield url


@pytest.fixture
def speak(
    tmp_path: Path, model_server: str, serve: Callable[..., Any], database_url: str
) -> Iterator[Callable[..., Client]]:
    """Run an instrumentation against the model server, then read the collector."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[1]
    (tmp_path / "draftgate_attributes.py").write_text(code)
    url = serve(database_url, env={"DRAFTGATE_CAPTURE_CONTENT": "1"}).url
    with Client(url) as client:

        def run(instrumentation: str, *, python: Path | None = None) -> Client:
            interpreter = python or client_environments.python_of(instrumentation)
            run_client(
                [
                    str(interpreter),
                    str(HERE / "clients" / "speak.py"),
                    instrumentation,
                    model_server,
                    url,
                ],
                env={"PYTHONPATH": str(tmp_path)},
            )
            return client

        yield run


def run_client(command: list[str], env: dict[str, str]) -> None:
    done = run_to_end(command, env=os.environ | env)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def by_prompt(client: Client) -> dict[str, Generation]:
    """Return what arrived by its prompt, without ids and times, which differ in each run."""
    found = {}
    for generation in client.generations("k4", content=True):
        assert generation.prompt_id is not None
        assert generation.e2e_s > 0
        found[generation.prompt_id] = generation
    return found


def without_run(generation: Generation) -> Generation:
    """Leave out what differs in each run, and the content, which is compared as JSON."""
    bare = {"trace_id": "", "span_id": "", "start_unix_ns": 0, "end_unix_ns": 0}
    return replace(generation, **bare, ttft_s=None, content=None)


def asked_of(prompt_id: str, **fields: Any) -> Generation:
    values: dict[str, Any] = {
        "rollout": "k4",
        "arm": Arm.CANDIDATE,
        "cohort": "chat",
        "prompt_id": prompt_id,
        "repeat": 0,
        "speculation": SPECULATION,
        "service_name": "desk",
    }
    bare = {"trace_id": "", "span_id": "", "start_unix_ns": 0, "end_unix_ns": 0}
    return Generation(**bare, **(values | fields))


def parts_of(messages: str | None) -> list[Any]:
    """Return messages without the finish reason, which only some senders give."""
    loaded = json.loads(messages or "[]")
    return [{k: v for k, v in message.items() if k != "finish_reason"} for message in loaded]


def agent_trace(client: Client, generation: Generation) -> dict[str, Span]:
    spans = {span.name: span for span in client.trace(generation.trace_id)}
    assert "agent" in spans
    return spans


COUNTED = {"input_tokens": 7, "output_tokens": 3}
REQUEST = {"max_tokens": 5, "temperature": 0.0, "top_p": 0.9}
EXPECTED: dict[str, tuple[Generation, ...]] = {
    "openinference": (
        asked_of(
            "plain",
            provider="openai",
            request_model="tiny",
            response_model="tiny-served",
            stop_sequences=("x",),
            finish_reasons=("stop",),
            cached_input_tokens=4,
            **COUNTED,
            **REQUEST,
        ),
        asked_of(
            "stream",
            streamed=True,
            provider="openai",
            request_model="tiny",
            response_model="tiny-served",
            finish_reasons=("stop",),
            cached_input_tokens=4,
            **COUNTED,
        ),
        # Its error type is in a span event.
        asked_of("missing", provider="openai", request_model="missing", error_type="set"),
    ),
    "openllmetry": (
        asked_of(
            "plain",
            provider="openai",
            request_model="tiny",
            response_model="tiny-served",
            response_id="chatcmpl-1",
            finish_reasons=("stop",),
            cached_input_tokens=4,
            **COUNTED,
            **REQUEST,
        ),
        asked_of(
            "stream",
            provider="openai",
            request_model="tiny",
            response_model="tiny-served",
            response_id="chatcmpl-1",
            finish_reasons=("stop",),
            cached_input_tokens=4,
            **COUNTED,
        ),
        asked_of("missing", provider="openai", request_model="missing", error_type="set"),
    ),
    "traceai": (
        asked_of(
            "plain",
            provider="vllm",
            request_model="tiny-served",
            stop_sequences=("x",),
            **COUNTED,
            **REQUEST,
        ),
        asked_of("stream", provider="vllm", request_model="tiny-served", **COUNTED),
        asked_of("missing", provider="vllm", request_model="missing", error_type="set"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("instrumentation", EXPECTED)
def test_an_instrumentation_of_the_openai_package_is_read_whole(
    instrumentation: str, speak: Callable[..., Client]
) -> None:
    """A request, a stream and a failure, with their texts, in the trace of their agent."""
    client = speak(instrumentation)
    found = by_prompt(client)
    wanted = {generation.prompt_id: generation for generation in EXPECTED[instrumentation]}
    assert found["missing"].error_type
    found["missing"] = replace(found["missing"], error_type="set")
    assert {name: without_run(generation) for name, generation in found.items()} == wanted
    for prompt_id, answer in (("plain", ANSWERED), ("stream", ANSWERED), ("missing", [])):
        content = found[prompt_id].content
        assert content is not None
        assert parts_of(content.input_messages) == ASKED
        assert parts_of(content.output_messages) == answer
    trace = client.trace(found["plain"].trace_id)
    assert len(trace) == 4
    (agent,) = (span for span in trace if span.name == "agent")
    assert {span.parent_span_id for span in trace} == {None, agent.span_id}


@pytest.mark.slow
def test_the_python_sdk_and_a_span_processor_are_read_whole(speak: Callable[..., Client]) -> None:
    """An application's own span, with the attributes of the documentation's span processor."""
    client = speak("sdk", python=Path(sys.executable))
    (generation,) = by_prompt(client).values()
    assert without_run(generation) == asked_of(
        "plain",
        provider="vllm",
        request_model="tiny",
        response_model="tiny-served",
        response_id="chatcmpl-1",
        finish_reasons=("stop",),
        **COUNTED,
    )
    assert generation.content is not None
    assert parts_of(generation.content.output_messages) == ANSWERED
    assert set(agent_trace(client, generation)) == {"agent", "chat tiny"}


def new_key(database_url: str, *scopes: str) -> str:
    """Create a key, and return its text."""
    of_scopes = [part for scope in scopes for part in ("--scope", scope)]
    asked = ["keys", "create", "k", *of_scopes, "--database", database_url]
    made = re.search(r"dgk_\S+", CliRunner().invoke(app, asked).stdout)
    assert made is not None
    return made[0]


@pytest.mark.slow
def test_langfuses_sdk_is_read_whole(
    model_server: str, serve: Callable[..., Any], database_url: str
) -> None:
    """By its own address, with a key of ours as its secret key, and our names in its metadata."""
    key = new_key(database_url, "ingest")
    settings = {"DRAFTGATE_CAPTURE_CONTENT": "1", "DRAFTGATE_REQUIRE_KEYS": "1"}
    url = serve(database_url, env=settings).url
    python = str(client_environments.python_of("langfuse"))
    script = str(HERE / "clients" / "langfuse_client.py")
    run_client([python, script, model_server, url, key], env={"OTEL_SERVICE_NAME": "desk"})
    reader = new_key(database_url, "read", "content")
    with Client(url, key=reader) as client:
        found = by_prompt(client)
    assert found["missing"].error_type is not None
    assert found["stream"].ttft_s is not None
    asked = {"cached_input_tokens": 4, "conversation_id": "s1", "speculation": None, **COUNTED}
    plain = asked_of("plain", request_model="tiny-served", **asked, **REQUEST)
    assert without_run(found["plain"]) == plain
    # Its client writes the API's defaults for what a request leaves out.
    stream = {"temperature": 1.0, "top_p": 1.0, "finish_reasons": ("stop",)}
    assert without_run(found["stream"]) == asked_of(
        "stream", request_model="tiny-served", **asked, **stream
    )
    for prompt_id in ("plain", "stream"):
        content = found[prompt_id].content
        assert content is not None
        assert parts_of(content.input_messages) == ASKED
        assert parts_of(content.output_messages) == ANSWERED


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["proto", "json"])
def test_the_javascript_sdk_is_read_whole(
    encoding: str, model_server: str, serve: Callable[..., Any], database_url: str
) -> None:
    """Both of its exporters: integers, doubles, booleans and arrays arrive as such."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no node and npm on the PATH (Debian: apt-get install npm)")
    folder = client_environments.javascript()
    url = serve(database_url, env={"DRAFTGATE_CAPTURE_CONTENT": "1"}).url
    run_client(["node", str(folder / "client.mjs"), encoding, model_server, url], env={})
    with Client(url) as client:
        (generation,) = client.generations("k4", content=True)
        spans = agent_trace(client, generation)
    speculation = Speculation(
        steps=3, draft_tokens=3, accepted_tokens=2, acceptance_histogram=(1, 2)
    )
    assert without_run(replace(generation, service_name=None)) == asked_of(
        "plain",
        arm=Arm.BASELINE,
        cohort=None,
        request_model="tiny",
        response_model="tiny-served",
        temperature=0.5,
        finish_reasons=("stop",),
        fallback=False,
        speculation=speculation,
        service_name=None,
        **COUNTED,
    )
    assert generation.content is not None
    assert parts_of(generation.content.output_messages) == ANSWERED
    assert spans["chat tiny"].parent_span_id == spans["agent"].span_id
    assert spans["chat tiny"].kind == "client"
