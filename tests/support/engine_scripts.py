"""Scripts that answer as each engine does, over a real socket: its stream, routes and metrics."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import scripted_server as server
from recorded_answers import SGLANG_0_5_23, document, events, exposition

from collector.contract import Speculation

SERVED = {"vllm": "tiny", "llamacpp": "pair/gguf/target-f32.gguf"}
"""The names that the recorded servers gave their model; the others serve `served`."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """What an engine sends, and what must be read of it."""

    stream: Iterable[Any]
    """The events, without the end mark."""
    documents: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, str] | None = None
    """Route and text of its Prometheus page."""
    output_tokens: int
    chunk_tokens: tuple[int, ...] | None
    """Tokens of each chunk; `None` if the engine does not report them."""
    speculation: Speculation | None
    model: str = "served"

    def routes(self, reply: server.Reply | None = None) -> list[server.Route]:
        """Return the script, with another answer to chats if one is given."""
        models = self.documents.get("/v1/models", {"data": [{"id": self.model}]})
        found = [
            server.Route(reply or self.whole()),
            server.Route(server.json_reply(models), path="/v1/models"),
        ]
        for path, said in self.documents.items():
            found.append(server.Route(server.json_reply(said), path=path))
        if self.metrics is not None:
            path, text = self.metrics
            page = server.Reply([server.Step.of(text.encode())], headers=_PLAIN)
            found.append(server.Route(page, path=path))
        return found

    def whole(self) -> server.Reply:
        """Return the whole stream."""
        return server.events([*map(server.event, self.stream), server.event("[DONE]")])

    def without(self, *names: str) -> server.Reply:
        """Return the stream as a proxy leaves it that takes fields away."""
        kept = [{k: v for k, v in one.items() if k not in names} for one in self.stream]
        return server.events([*map(server.event, kept), server.event("[DONE]")])

    def cut(self) -> server.Reply:
        """Return a stream that ends in good order, but without the end mark."""
        return server.events([server.event(one) for one in self.stream])

    def failing(self, error: Mapping[str, Any]) -> server.Reply:
        """Return a stream that fails half-way."""
        steps = [server.event(one) for one in self.stream]
        return server.events([*steps[: len(steps) // 2], server.event(error)])


_PLAIN = {"content-type": "text/plain; version=0.0.4"}
_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def _stream(*more: Mapping[str, Any]) -> list[Any]:
    """Return a chat stream of three texts, with the engine's own events at the end."""
    texts = ("Par", "is", ".")
    deltas = [server.delta({"role": "assistant", "content": ""})]
    deltas += [server.delta({"content": text}) for text in texts]
    deltas += [server.delta({}, "stop"), *more, server.delta(None, usage=_USAGE)]
    return deltas


SCRIPTS = {
    "vllm": Script(
        model=SERVED["vllm"],
        stream=list(events("vllm/draft.sse")),
        documents={
            "/version": document("vllm/version.json"),
            "/v1/models": document("vllm/models.json"),
        },
        metrics=("/metrics", exposition("vllm/draft_metrics_before.txt")),
        output_tokens=64,
        chunk_tokens=None,  # the recorded request did not ask for token ids
        speculation=Speculation(
            num_speculative_tokens=4,
            source="request",
            steps=22,
            draft_tokens=88,
            accepted_tokens=44,
            draft_tokens_per_pos=(22, 22, 22, 22),
            accepted_tokens_per_pos=(14, 12, 11, 7),
            acceptance_histogram=(8, 2, 1, 4, 7),
        ),
    ),
    "llamacpp": Script(
        model=SERVED["llamacpp"],
        stream=list(events("llamacpp/draft_timings_per_token.sse")),
        documents={
            "/props": document("llamacpp/draft_props.json"),
            "/slots": document("llamacpp/draft_slots.json"),
            "/v1/models": document("llamacpp/models.json"),
        },
        metrics=("/metrics", exposition("llamacpp/draft_metrics_before.txt")),
        output_tokens=40,
        chunk_tokens=(1,) * 40,
        speculation=Speculation(
            method="draft_model",
            source="request",
            steps=16,
            draft_tokens=58,
            accepted_tokens=23,
            draft_tokens_per_pos=(16, 15, 14, 13),
            accepted_tokens_per_pos=(10, 6, 5, 2),
            acceptance_histogram=(6, 4, 1, 3, 2),
        ),
    ),
    "sglang": Script(
        stream=_stream(server.delta(None, sglext={"spec_tokens_details": SGLANG_0_5_23})),
        documents={
            "/server_info": {
                "version": "0.5.23",
                "speculative_algorithm": "EAGLE3",
                "speculative_draft_model_path": "/models/eagle",
                "speculative_eagle_topk": 1,
                "speculative_num_draft_tokens": 4,
            }
        },
        output_tokens=3,
        chunk_tokens=None,
        speculation=Speculation(
            method="eagle3",
            draft_model="eagle",
            num_speculative_tokens=3,
            source="derived",
            steps=16,
            draft_tokens=48,
            accepted_tokens=24,
            accepted_tokens_per_pos=(12, 8, 4),
            acceptance_histogram=(4, 4, 4, 4),
        ),
    ),
    "tensorrt_llm": Script(stream=_stream(), output_tokens=3, chunk_tokens=None, speculation=None),
    "tgi": Script(
        stream=_stream(),
        documents={"/info": {"version": "3.3.7", "max_total_tokens": 2048}},
        output_tokens=3,
        chunk_tokens=None,
        speculation=None,
    ),
    "lmdeploy": Script(stream=_stream(), output_tokens=3, chunk_tokens=None, speculation=None),
    "openai": Script(stream=_stream(), output_tokens=3, chunk_tokens=None, speculation=None),
}
