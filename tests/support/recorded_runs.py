"""The generations that a run records of a few turns, without a collector."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from collector.contract import Arm, Generation
from engine_adapter.engines import EngineOpener
from engine_adapter.routes import Route
from engine_adapter.run import runner
from engine_adapter.run.schedule import Turn


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
