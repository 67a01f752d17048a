"""The interface of every engine: one streaming call; values that are unknown stay absent."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine_adapter.engines.answer import Answer, SpeculationSetup
from engine_adapter.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One chat request."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float = 0.0
    """0 is greedy."""
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON values
    """Other members of the body, the same for every request."""
    own: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON values
    """Members of the body set by this request's record; they override all others."""
    trace_id: str | None = None
    """The generation's trace; an engine with tracing adds its own span to it."""
    span_id: str | None = None

    @property
    def limit(self) -> int:
        """The limit on output tokens, under either of the API's two names."""
        for asked in (self.own, self.more):
            for name in ("max_completion_tokens", "max_tokens"):
                if name in asked:
                    return int(asked[name])
        return self.max_tokens

    def body(self, model: str, added: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON values
        """Return the chat-completions body; `added`: members set by the route."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [message.api() for message in self.messages],
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "stream": True,
        }
        optional = {"top_p": self.top_p, "top_k": self.top_k, "seed": self.seed}
        body |= {key: value for key, value in optional.items() if value is not None}
        body |= {**self.more, **added, **self.own}
        if "max_completion_tokens" in body:
            del body["max_tokens"]
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The request was sent."""

    at_s: float
    """Reading of `time.perf_counter` when its first byte was handed to the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of the answer's content, stamped when it reached the client.

    Events without content (the role, usage, a ping) are not chunks: the first chunk is the first
    token.
    """

    at_s: float
    """Reading of `time.perf_counter`."""
    tokens: int | None
    """Tokens in the chunk; under speculation one chunk is one verify step."""
    is_answer: bool = True
    """Whether it belongs to the answer (text or tool calls) rather than to the reasoning."""
    late_s: float | None = None
    """How late the stamps so far may be because the client could not read in time, so that several
    chunks got the last one's stamp; `None` if not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """The engine and model behind a route."""

    provider: str
    """`gen_ai.provider.name`: transformers, vllm, …"""
    model: str
    version: str | None
    """The engine's version; `None` if it does not say."""
    fingerprint: str
    """Hash of target, draft, tokenizer, engine version and flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A running engine's report on itself; `None` is unknown."""

    version: str | None = None
    setup: SpeculationSetup = field(default_factory=SpeculationSetup)
    synthetic_acceptance: bool | None = None
    """True if acceptance is simulated (a benchmark option); the answers are then worthless."""
    prefix_cache: bool | None = None
    """Whether the KV cache of an earlier request's prefix is reused."""
    per_request_metrics: bool | None = None
    """Whether the engine reports counts or times of each request."""
    metrics_url: str | None = None
    """URL of its Prometheus metrics, if found."""
    async_scheduling: bool | None = None
    context_length: int | None = None
    served_by: str | None = None
    """The engine named in its list of models, as in `HttpRoute.engine`."""
    target: str | None = None
    """The folder or name of the weights that it serves."""
    target_parameters: int | None = None
    kv_cache_dtype: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    chat_template: str | None = None
    stop_token_ids: tuple[int, ...] | None = None
    model_family: str | None = None
    """The architecture's name, such as `llama`."""
    model_folder: str | None = None
    """Local folder that holds model and tokenizer."""
    tokenizer_digest: str | None = None
    """Hash of the vocabulary, merges and special tokens; equal digests mean equal token ids."""
    sampling_defaults: Mapping[str, float] = field(default_factory=dict)
    """The server's default sampling parameters by name, without those that have no effect; empty
    if the engine does not report them."""
    sampling_order: tuple[str, ...] | None = None
    """The sampling parameters in the order of the server's steps, if it reports them."""
    free_memory_bytes: int | None = None
    advice: tuple[str, ...] = ()
    """Sentences for the user: facts to know or settings to change."""

    @property
    def speculates(self) -> bool | None:
        """Whether it speculates."""
        return self.setup.on


Item = Sent | Chunk | Answer


class Engine(Protocol):
    """A route's engine.

    Many calls of `generate` may run at once, in one event loop; an engine that answers one request
    at a time queues the others and reports the wait as `queue_s`.
    """

    info: EngineInfo
    """The engine and model behind the route."""

    async def probe(self) -> Probe:
        """Return what the engine reports; raises `EngineSetupError` if it is unusable."""
        ...

    def request_body(self, request: Request) -> Mapping[str, Any]:  # Any: JSON values
        """Return the chat-completions body, with all added members; none are added by default."""
        return request.body(self.info.model, {})

    def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield `Sent` if the time of sending is known, the chunks, then one `Answer`.

        Raises `GenerationError` if the request fails, before or after the first chunk. An HTTP or
        scripted engine yields the partial answer, without a finish reason, before it raises.
        """
        ...

    async def close(self) -> None:
        """Release the engine's resources; safe to call twice."""
        ...
