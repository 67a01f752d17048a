"""Ask a model server as an instrumented application does, and send the spans to a collector.

Usage: speak.py INSTRUMENTATION SERVER COLLECTOR
"""

import contextlib
import json
import sys
from typing import Any
from urllib.parse import urlsplit

from draftgate_attributes import DraftgateAttributes
from opentelemetry import baggage, context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

MESSAGES = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "capital of France?"},
]


def instrument(name: str, provider: TracerProvider, server: str) -> None:
    if name == "openinference":
        from openinference.instrumentation.openai import OpenAIInstrumentor

        OpenAIInstrumentor().instrument(tracer_provider=provider)
    elif name == "openllmetry":
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor as OpenLLMetry

        OpenLLMetry().instrument(tracer_provider=provider)
    elif name == "traceai":
        from traceai_vllm import VLLMInstrumentor

        instrumentor = VLLMInstrumentor(vllm_base_urls=[urlsplit(server).netloc])
        instrumentor.instrument(tracer_provider=provider)


def ask(server: str) -> None:
    """Ask once at a time, once as a stream, and once for a model that is not there."""
    import openai

    client = openai.OpenAI(base_url=server + "/v1", api_key="none", max_retries=0)
    as_prompt("plain")
    client.chat.completions.create(
        model="tiny", messages=MESSAGES, max_tokens=5, temperature=0.0, top_p=0.9, stop=["x"]
    )
    as_prompt("stream")
    for _ in client.chat.completions.create(
        model="tiny", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    ):
        pass
    as_prompt("missing")
    with contextlib.suppress(openai.NotFoundError):
        client.chat.completions.create(model="missing", messages=MESSAGES)


def ask_by_hand(server: str, tracer: trace.Tracer) -> None:
    """Ask without an instrumentation: the span is the application's own."""
    import httpx

    as_prompt("plain")
    with tracer.start_as_current_span("chat tiny", kind=trace.SpanKind.CLIENT) as span:
        asked = {"model": "tiny", "messages": MESSAGES}
        answer = httpx.post(server + "/v1/chat/completions", json=asked).json()
        parts = [{"type": "text", "content": answer["choices"][0]["message"]["content"]}]
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "vllm",
                "gen_ai.request.model": "tiny",
                "gen_ai.response.model": answer["model"],
                "gen_ai.response.id": answer["id"],
                "gen_ai.response.finish_reasons": [answer["choices"][0]["finish_reason"]],
                "gen_ai.usage.input_tokens": answer["usage"]["prompt_tokens"],
                "gen_ai.usage.output_tokens": answer["usage"]["completion_tokens"],
                "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
            }
        )


def as_prompt(prompt_id: str) -> None:
    told: dict[str, Any] = {
        "draftgate.rollout": "k4",
        "draftgate.arm": "candidate",
        "draftgate.cohort": "chat",
        "draftgate.prompt.id": prompt_id,
        "draftgate.repeat": 0,
        "spec_decode.num_speculative_tokens": 4,
    }
    current = context.get_current()
    for name, value in told.items():
        current = baggage.set_baggage(name, value, current)
    context.attach(current)


def main() -> None:
    name, server, collector = sys.argv[1:]
    provider = TracerProvider(resource=Resource({"service.name": "desk"}))
    provider.add_span_processor(DraftgateAttributes())
    exporter = OTLPSpanExporter(endpoint=collector + "/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    instrument(name, provider, server)
    tracer = provider.get_tracer("desk")
    with tracer.start_as_current_span("agent"):
        if name == "sdk":
            ask_by_hand(server, tracer)
        else:
            ask(server)
    provider.shutdown()


if __name__ == "__main__":
    main()
