"""An engine that answers from a table, for tests."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass

from collector.contract import Speculation
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.base import (
    Chunk,
    Engine,
    EngineInfo,
    Item,
    Probe,
    Request,
)
from engine_adapter.errors import GenerationError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    """The scripted answer to one prompt."""

    chunks: Sequence[str] = ()
    """The text of each chunk, one token each."""
    finish_reason: str = "stop"
    input_tokens: int | None = None
    speculation: Speculation | None = None
    error: GenerationError | None = None
    """Raised after the chunks."""


class ScriptedEngine(Engine):
    """Answers by a request's last message; calls `wait` in a thread before each chunk."""

    def __init__(
        self, answers: Mapping[str, ScriptedAnswer], wait: Callable[[], None] = lambda: None
    ) -> None:
        self.requests: list[Request] = []
        self._answers = answers
        self._wait = wait

    info = EngineInfo(provider="scripted", model="script", version="1", fingerprint="script")

    async def probe(self) -> Probe:
        """Return an empty probe."""
        return Probe()

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the scripted chunks and answer; raises `GenerationError` for an unknown prompt."""
        self.requests.append(request)
        answer = self._answers.get(request.messages[-1].text)
        if answer is None:
            raise GenerationError("unknown_prompt", "the script has no answer to this prompt")
        kept = answer.chunks[: request.limit]
        for _ in kept:
            await asyncio.to_thread(self._wait)
            yield Chunk(at_s=time.perf_counter(), tokens=1)
        if answer.error is not None:
            yield Answer(text="".join(kept))
            raise answer.error
        yield Answer(
            text="".join(kept),
            model=self.info.model,
            finish_reason=answer.finish_reason if len(kept) == len(answer.chunks) else "length",
            input_tokens=answer.input_tokens,
            output_tokens=len(kept),
            speculation=answer.speculation,
        )

    async def close(self) -> None:
        """Do nothing."""
