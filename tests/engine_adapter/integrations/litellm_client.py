"""Call a server through LiteLLM, whole, streamed, asynchronously and in vain; print the spans."""

import asyncio
import contextlib
import json
import sys

import litellm
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from engine_adapter.integrations.litellm_callback import AcceptanceCallback


def main(url: str) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    callback = AcceptanceCallback("vllm", tracer_provider=provider)
    litellm.suppress_debug_info = True  # standard output is the spans'
    litellm.callbacks = [callback]
    litellm.client_session = callback.client()
    litellm.aclient_session = callback.async_client()
    call = {
        "model": "openai/tiny",
        "api_base": url,
        "api_key": "none",
        "messages": [{"role": "user", "content": "Where?"}],
        "metadata": {"draftgate.rollout": "r", "draftgate.arm": "candidate", "team": "x"},
        "num_retries": 0,
    }
    for _ in litellm.completion(**call, stream=True):
        pass
    with contextlib.suppress(litellm.NotFoundError):
        litellm.completion(**(call | {"api_base": f"{url}/nowhere"}))

    async def later() -> None:
        async for _ in await litellm.acompletion(**call, stream=True):
            pass
        for _ in range(200):  # LiteLLM reports from a task of its own
            if len(exporter.get_finished_spans()) >= 3:
                break
            await asyncio.sleep(0.1)

    asyncio.run(later())
    spans = [
        {"name": span.name, "attributes": dict(span.attributes or {})}
        for span in exporter.get_finished_spans()
    ]
    sys.stdout.write(json.dumps(spans, default=list))


main(sys.argv[1])
