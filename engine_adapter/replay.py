"""Run a rollout file's experiment from start to delivery."""

from collections.abc import Callable
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from collector.contract import Arm, Generation
from engine_adapter import runner, workload
from engine_adapter.engines import EngineOpener
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
    load = rollout.load
    prompts = workload.read(Path(rollout.workload))[: load.max_prompts]
    opener = opener or EngineOpener()
    failed = sent = 0
    with (
        closing(SpanSender(rollout.collector.url)) as sender,
        closing(opener.open(rollout.baseline)) as baseline,
        closing(opener.open(rollout.candidate)) as candidate,
    ):
        sender.check()
        experiment = runner.Experiment(
            rollout=rollout.rollout,
            engines={Arm.BASELINE: baseline, Arm.CANDIDATE: candidate},
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
        total = len(prompts) * load.repeats * len(Arm)
        for generation in runner.run(experiment, schedule, concurrency=load.concurrency):
            sender.send(generation)
            sent += 1
            failed += generation.error_type is not None
            if progress is not None:
                progress(generation, total)
    return RunCounts(sent, failed)


def _version() -> str:
    try:
        return version("draftgate")
    except PackageNotFoundError:
        return "unknown"
