"""Twenty prompts of the demo's workload, and a route's answers to them, sent one at a time."""

import asyncio
import itertools
from pathlib import Path

from engine_adapter import workload
from engine_adapter.engines import Answer, Chunk, EngineOpener, Probe, Request
from engine_adapter.routes import Route

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "demo" / "models"
MAX_TOKENS = 64


class Answers:
    """A route's answers, by prompt."""

    def __init__(self, route: Route) -> None:
        self.completions: list[Answer] = []
        self.chunks: list[list[Chunk]] = []
        self.probe = asyncio.run(self._collect(route))

    @property
    def texts(self) -> list[str]:
        return [completion.text for completion in self.completions]

    @property
    def totals(self) -> tuple[int, int, int]:
        """Steps, drafted and accepted tokens over all prompts that have counts.

        vLLM gives none to an answer for which it drafted nothing, as n-grams often do.
        """
        sums = [0, 0, 0]
        for completion in self.completions:
            said = completion.speculation
            assert said is not None
            for place, count in enumerate((said.steps, said.draft_tokens, said.accepted_tokens)):
                sums[place] += count or 0
        return sums[0], sums[1], sums[2]

    async def _collect(self, route: Route) -> Probe:
        engine = await EngineOpener().open(route)
        try:
            for request in requests():
                items = [item async for item in engine.generate(request)]
                self.chunks.append([item for item in items if isinstance(item, Chunk)])
                assert isinstance(items[-1], Answer)
                self.completions.append(items[-1])
            return await engine.probe()
        finally:
            await engine.close()


def requests() -> list[Request]:
    """Return the prompts as greedy requests."""
    prompts = itertools.islice(workload.read(ROOT / "demo" / "workload.jsonl"), 20)
    return [Request(messages=prompt.chat, max_tokens=MAX_TOKENS) for prompt in prompts]
