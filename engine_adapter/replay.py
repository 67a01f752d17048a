"""Run a rollout file's experiment from start to delivery."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from collector.contract import Arm, Generation
from engine_adapter import runner, workload
from engine_adapter.engines import Engine, EngineOpener
from engine_adapter.rollout_file import Rollout
from engine_adapter.schedule import turns
from engine_adapter.telemetry import SpanSender


class RunCounts(NamedTuple):
    """What a run sent to the collector."""

    generations: int
    failed: int


Progress = Callable[[Generation, int], None]
"""Called after each generation with it and the number of generations that the run will make."""


def replay(
    rollout: Rollout, *, opener: EngineOpener | None = None, progress: Progress | None = None
) -> RunCounts:
    """Answer the workload on both routes, send every generation, and return the counts.

    Raises `AdapterError`: before the first request where the workload, a route or the collector is
    unusable, and at the end where spans could not be delivered. Give an `opener` to share loaded
    models between runs.
    """
    return asyncio.run(_replay(rollout, opener or EngineOpener(), progress))


async def _replay(rollout: Rollout, opener: EngineOpener, progress: Progress | None) -> RunCounts:
    load = rollout.load
    prompts = workload.read(Path(rollout.workload))[: load.max_prompts]
    total = len(prompts) * load.repeats * len(Arm)
    counts = RunCounts(0, 0)
    async with AsyncExitStack() as opened:
        sender = opened.enter_context(closing(SpanSender(rollout.collector.url)))
        engines: dict[Arm, Engine] = {}
        for arm, route in ((Arm.BASELINE, rollout.baseline), (Arm.CANDIDATE, rollout.candidate)):
            engines[arm] = await opener.open(route)
            opened.push_async_callback(engines[arm].close)
        sender.check()

        def record(generation: Generation) -> None:
            nonlocal counts
            sender.send(generation)
            failed = counts.failed + (generation.error_type is not None)
            counts = RunCounts(counts.generations + 1, failed)
            if progress is not None:
                progress(generation, total)

        experiment = runner.Experiment(
            rollout=rollout.rollout,
            engines=engines,
            sampling=rollout.sampling,
            service_version=_version(),
        )
        schedule = turns(
            prompts,
            repeats=load.repeats,
            order=load.order,
            warmup=load.warmup,
            seed=rollout.sampling.seed,
        )
        await runner.run(experiment, schedule, concurrency=load.concurrency, record=record)
    return counts


def _version() -> str:
    try:
        return version("draftgate")
    except PackageNotFoundError:
        return "unknown"
