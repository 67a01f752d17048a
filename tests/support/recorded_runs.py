"""What a route yields for a request, and what a run records of a few turns; no collector."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import Any

from collector.contract import Arm, Generation
from engine_adapter.engines import EngineOpener, Item, Request
from engine_adapter.messages import Message
from engine_adapter.routes import Route
from engine_adapter.run import runner
from engine_adapter.run.schedule import Turn


def request(text: str, *, max_tokens: int = 24, temperature: float = 0.0) -> Request:
    """Return a request of one message."""
    return Request(
        messages=(Message(role="user", content=text),),
        max_tokens=max_tokens,
        temperature=temperature,
        seed=7,
    )


def items_of(route: Route, request: Request) -> list[Item]:
    """Return all that a route yields for one request."""

    async def collect() -> list[Item]:
        engine = await EngineOpener().open(route)
        try:
            async with aclosing(engine.generate(request)) as items:
                return [item async for item in items]
        finally:
            await engine.close()

    return asyncio.run(collect())


def recorded(
    routes: Route | Mapping[Arm, Route],
    turns: Iterable[Turn],
    *,
    concurrency: int | None = 1,
    **more: Any,
) -> list[Generation]:
    """Answer the turns by a route for both arms, or one for each; `more`: of the `Experiment`."""
    made: list[Generation] = []

    async def run() -> None:
        opener = EngineOpener()
        if isinstance(routes, Mapping):
            engines = {arm: await opener.open(route) for arm, route in routes.items()}
        else:
            engines = dict.fromkeys(Arm, await opener.open(routes))
        experiment = runner.Experiment(rollout="r", engines=engines, **more)
        await runner.run(experiment, turns, concurrency=concurrency, record=made.append)
        for engine in engines.values():
            await engine.close()

    asyncio.run(run())
    return made
