"""The OpenAI SDK, instrumented by OpenInference, over our transport: acceptance on its own span."""

import asyncio
from collections.abc import Iterator

import httpx2
import pytest
import scripted_server as server
from engine_scripts import SCRIPTS
from openai import AsyncOpenAI, OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from recorded_answers import document

from engine_adapter.errors import EngineSetupError
from engine_adapter.integrations import AcceptanceTransport, AsyncAcceptanceTransport

COUNTS = {
    "spec_decode.source": "request",
    "spec_decode.num_speculative_tokens": 4,
    "spec_decode.num_steps": 22,
    "spec_decode.num_draft_tokens": 88,
    "spec_decode.num_accepted_tokens": 44,
    "spec_decode.num_draft_tokens_per_pos": (22, 22, 22, 22),
    "spec_decode.num_accepted_tokens_per_pos": (14, 12, 11, 7),
    "spec_decode.acceptance_histogram": (8, 2, 1, 4, 7),
}
QUESTION = [{"role": "user", "content": "Where?"}]
VLLM = SCRIPTS["vllm"]


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Instrument the SDK, and keep the exported spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


def only(spans: InMemorySpanExporter) -> ReadableSpan:
    (span,) = spans.get_finished_spans()
    return span


def speculation(span: ReadableSpan) -> dict[str, object]:
    return {
        name: value
        for name, value in (span.attributes or {}).items()
        if name.startswith("spec_decode.")
    }


def client_of(url: str) -> OpenAI:
    transport = AcceptanceTransport("vllm", httpx2.HTTPTransport())
    return OpenAI(base_url=url, api_key="none", http_client=httpx2.Client(transport=transport))


def test_a_stream_puts_its_acceptance_on_the_sdks_span(spans: InMemorySpanExporter) -> None:
    """The instrumentation's span has its own attributes, and the engine's counts beside them."""
    with server.running(*VLLM.routes()) as running:
        with client_of(running.url) as client:
            stream = client.chat.completions.create(model="tiny", messages=QUESTION, stream=True)  # type: ignore[arg-type]
            text = "".join(
                chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices
            )
        asked = running.log()[-1].body
    assert text == document("vllm/draft.json")["choices"][0]["message"]["content"]
    span = only(spans)
    assert speculation(span) == COUNTS
    assert span.attributes["openinference.span.kind"] == "LLM"
    assert span.attributes["gen_ai.latency.time_in_queue"] == pytest.approx(3.5037e-05)
    assert (asked["stream_options"], asked["return_token_ids"]) == ({"include_usage": True}, True)


def test_a_whole_answer_puts_its_acceptance_on_the_sdks_span(spans: InMemorySpanExporter) -> None:
    """So does an answer that is not streamed, from its body."""
    whole = server.Route(server.json_reply(document("vllm/draft.json")))
    with server.running(whole) as running, client_of(running.url) as client:
        answer = client.chat.completions.create(model="tiny", messages=QUESTION)  # type: ignore[arg-type]
    assert answer.usage.completion_tokens == 64
    assert speculation(only(spans)) == COUNTS


def test_the_asynchronous_client_does_the_same(spans: InMemorySpanExporter) -> None:
    """Over the asynchronous transport, streamed."""

    async def ask(url: str) -> None:
        transport = AsyncAcceptanceTransport("vllm", httpx2.AsyncHTTPTransport())
        async with AsyncOpenAI(
            base_url=url, api_key="none", http_client=httpx2.AsyncClient(transport=transport)
        ) as client:
            stream = await client.chat.completions.create(
                model="tiny",
                messages=QUESTION,  # type: ignore[arg-type]
                stream=True,
            )
            async for _ in stream:
                pass

    with server.running(*VLLM.routes()) as running:
        asyncio.run(ask(running.url))
    assert speculation(only(spans)) == COUNTS


def test_an_error_is_the_sdks_to_report(spans: InMemorySpanExporter) -> None:
    """The transport changes no answer: the SDK raises what it always raised."""
    refusal = server.Route(server.json_reply({"error": {"message": "no"}}, 400))
    with (
        server.running(refusal) as running,
        client_of(running.url) as client,
        pytest.raises(Exception, match="400"),
    ):
        client.chat.completions.create(model="tiny", messages=QUESTION)  # type: ignore[arg-type]
    assert speculation(only(spans)) == {}


def test_without_a_span_nothing_is_read_and_what_was_asked_for_stands() -> None:
    """The user's own fields win over those that the reader wants; other routes pass untouched."""
    with server.running(*VLLM.routes()) as running:
        transport = AcceptanceTransport("vllm", httpx2.HTTPTransport())
        with httpx2.Client(transport=transport) as client:
            body = {"model": "tiny", "stream": True, "stream_options": {"include_usage": False}}
            answer = client.post(f"{running.url}/chat/completions", json=body)
            assert answer.text.endswith("data: [DONE]\n\n")
            listed = client.get(f"{running.url}/models").json()
        asked = running.log()[0]
    assert asked.body["stream_options"] == {"include_usage": False}
    assert listed["data"][0]["id"] == "tiny"


def test_an_unknown_engine_is_told_at_once() -> None:
    """The message lists the engines."""
    with pytest.raises(EngineSetupError, match=r"ollama is none .* wanted one of llamacpp, "):
        AcceptanceTransport("ollama", httpx2.HTTPTransport())
