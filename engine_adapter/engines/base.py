"""What every engine offers: one streaming call, counts told truthfully, unknown left absent."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from collector.contract import DeviceUse, Speculation
from engine_adapter.workload import Message


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
    trace_id: str | None = None
    """Of the generation's span: an engine that traces joins its own span to it."""
    span_id: str | None = None


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
    text: str | None = None
    """Its text, where it is known by then: what is kept of an answer that fails later."""
    late_s: float | None = None
    """By how much the stamps so far may be late because the client was kept from reading, so that
    several chunks have the last one's; `None` if nobody watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The end of an answer."""

    text: str
    finish_reason: str
    """`stop`, `length`, or another that the engine gave."""
    input_tokens: int | None
    output_tokens: int | None
    speculation: Speculation | None
    """Absent if the route does not speculate."""
    response_id: str | None = None
    response_model: str | None = None
    """The model that answered, where the engine says so."""
    cached_input_tokens: int | None = None
    queue_s: float | None = None
    server_ttft_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    device: DeviceUse | None = None
    """Of an engine in this process."""


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
    free_memory_bytes: int | None = None
    advice: tuple[str, ...] = ()
    """What the user should know or change, each a sentence."""


Item = Sent | Chunk | Completion


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

    def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield `Sent` where the engine knows it, the answer's chunks, then one `Completion`.

        Raises `GenerationError` if the request fails, before or after the first chunk.
        """
        ...

    async def close(self) -> None:
        """Release what the engine holds; safe to call twice."""
        ...
