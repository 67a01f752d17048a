"""What every engine offers: one streaming call, counts told truthfully, unknown left absent."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine_adapter.engines.answer import Answer
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
    """Other parameters of every request, as members of its body."""
    own: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON values
    """What this request's record asks for by itself: it wins over all else."""
    trace_id: str | None = None
    """Of the generation's span: an engine that traces joins its own span to it."""
    span_id: str | None = None

    @property
    def limit(self) -> int:
        """The most tokens of an answer, by whichever of the API's two names."""
        for asked in (self.own, self.more):
            for name in ("max_completion_tokens", "max_tokens"):
                if name in asked:
                    return int(asked[name])
        return self.max_tokens

    def body(self, model: str, added: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON values
        """Return the body of a chat-completions request, with what its route adds."""
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
    """The request left the client."""

    at_s: float
    """Reading of `time.perf_counter` when its first byte was handed to the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of the answer's content, stamped when it reached the client.

    What carries no content (the role, usage, a ping) is no chunk: the first chunk is the first
    token.
    """

    at_s: float
    """Reading of `time.perf_counter`."""
    tokens: int | None
    """Tokens in the chunk; under speculation one chunk is one verify step."""
    is_answer: bool = True
    """Whether it is of the answer itself, text or tool calls, and not of the reasoning before."""
    late_s: float | None = None
    """By how much the stamps so far may be late because the client was kept from reading, so that
    several chunks have the last one's; `None` if nobody watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What answers on a route."""

    provider: str
    """`gen_ai.provider.name`: transformers, vllm, …"""
    model: str
    version: str
    """The engine's version; `unknown` if it does not say."""
    fingerprint: str
    """Hash of target, draft, tokenizer, engine version and flags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a running engine says of itself; `None` is unknown."""

    version: str | None = None
    speculates: bool | None = None
    speculation_method: str | None = None
    draft_model: str | None = None
    num_speculative_tokens: int | None = None
    lossless: bool | None = None
    """False where a relaxed acceptance is on."""
    synthetic_acceptance: bool | None = None
    """True where acceptance is made up (a benchmark's switch): answers are then worthless."""
    prefix_cache: bool | None = None
    """Whether an earlier request's prefix is reused."""
    per_request_metrics: bool | None = None
    """Whether the engine tells counts or times of each request."""
    metrics_url: str | None = None
    """Where its Prometheus metrics were found."""
    async_scheduling: bool | None = None
    context_length: int | None = None
    served_by: str | None = None
    """The engine that its list of models names, as a route has it."""
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
    """A folder on this machine that holds model and tokenizer."""
    tokenizer_digest: str | None = None
    """Hash of the vocabulary, merges and special tokens; equal ones read and write the same ids."""
    sampling_defaults: Mapping[str, float] = field(default_factory=dict)
    """What answers are sampled by where a request says nothing, by the parameters' names; of those
    that change nothing, and of engines that do not say, there is none."""
    free_memory_bytes: int | None = None
    advice: tuple[str, ...] = ()
    """What the user should know or change, each a sentence."""


Item = Sent | Chunk | Answer


class Engine(Protocol):
    """A route's engine.

    Many calls of `generate` may run at once, in one event loop; an engine that answers one request
    at a time queues the others and reports the wait as `queue_s`.
    """

    @property
    def info(self) -> EngineInfo:
        """What answers here."""
        ...

    async def probe(self) -> Probe:
        """Ask the engine what it is and does; raises `EngineSetupError` if it is unusable."""
        ...

    def asked(self, request: Request) -> Mapping[str, Any]:  # Any: JSON values
        """Return the request as the chat-completions API has it, with all that is asked for."""
        ...

    def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield `Sent` where the engine knows it, the answer's chunks, then one `Answer`.

        Raises `GenerationError` if the request fails, before or after the first chunk; what had
        arrived by then is yielded before, as an answer without an end.
        """
        ...

    async def close(self) -> None:
        """Release what the engine holds; safe to call twice."""
        ...
