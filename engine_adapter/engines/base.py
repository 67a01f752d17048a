"""What every engine offers: one streaming call, counts told truthfully, unknown left absent."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from collector.contract import Speculation
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of the answer, stamped when it reached the client."""

    at_s: float
    """Reading of `time.perf_counter`."""
    tokens: int | None
    """Tokens in the chunk; under speculation one chunk is one verify step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The end of an answer."""

    text: str
    finish_reason: str
    """`stop` or `length`."""
    input_tokens: int | None
    output_tokens: int | None
    speculation: Speculation | None
    """Absent where the route does not speculate."""
    response_id: str | None = None
    cached_input_tokens: int | None = None
    queue_s: float | None = None
    server_ttft_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What answers on a route."""

    provider: str
    """`gen_ai.provider.name`: transformers, vllm, …"""
    model: str
    version: str
    """The engine's version."""
    fingerprint: str
    """Hash of target, draft, tokenizer, engine version and flags."""


class Engine(Protocol):
    """A route's engine.

    `generate` may be called from several threads at once; an engine that answers one request at a
    time queues the others and reports the wait as `queue_s`.
    """

    @property
    def info(self) -> EngineInfo:
        """What answers here."""
        ...

    def generate(self, request: Request) -> Iterator[Chunk | Completion]:
        """Yield the answer's chunks in order, then exactly one `Completion`.

        Raises `GenerationError` where the request fails, before or after the first chunk.
        """
        ...

    def close(self) -> None:
        """Release what the engine holds; safe to call twice."""
        ...
