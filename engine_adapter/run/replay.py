"""Run a rollout file's experiment from start to delivery."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from collector.contract import Arm, Generation
from engine_adapter import workload
from engine_adapter.engines import Engine, EngineOpener
from engine_adapter.engines.arm_process import ArmProcess
from engine_adapter.engines.gpu_samples import GpuReader
from engine_adapter.routes import HttpRoute, Route
from engine_adapter.run import generator_lag, journal, runner, traces
from engine_adapter.run.arm_counts import ArmCounts
from engine_adapter.run.engine_samples import EngineSampler, Source
from engine_adapter.run.generator_lag import Lag, LoopWatch
from engine_adapter.run.journal import Journal
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.schedule import Turn, turns
from engine_adapter.run.telemetry import SpanSender, require_collector


class RunCounts(NamedTuple):
    """What a run sent to the collector, and how late it was itself."""

    generations: int
    failed: int
    resumed: int = 0
    """Generations that an earlier attempt had stored."""
    send_lag: Lag = generator_lag.summary(())
    """How much later than due requests were sent; measured in open loops."""
    loop_lag: Lag = generator_lag.summary(())
    """How long what was due in this process waited for it."""
    engine_samples: int = 0
    """Gauges of the engines' own metrics, and of this machine's GPUs."""
    arms: Mapping[str, ArmCounts] = {}
    """By arm, of this attempt."""

    @property
    def failures(self) -> tuple[str, ...]:
        """Say of each arm that mostly failed how much and why."""
        return tuple(
            f"the {arm} failed in {counts.failed} of {counts.generations} answers, "
            f"lastly with {counts.error_type}"
            for arm, counts in self.arms.items()
            if counts.mostly_failed
        )

    @property
    def suspicions(self) -> tuple[str, ...]:
        """Say of each arm what looks broken, though its answers did not fail."""
        return tuple(f"the {arm}: {one}" for arm, of in self.arms.items() for one in of.suspicions)


class RunProgress(NamedTuple):
    """How far a run is."""

    generation: Generation | None
    """The newest; absent at the beginning."""
    done: int
    total: int


Progress = Callable[[RunProgress], None]


def replay(
    rollout: Rollout,
    *,
    opener: EngineOpener | None = None,
    progress: Progress | None = None,
    notes: Journal | None = None,
) -> RunCounts:
    """Answer the workload on both routes, send every generation, and return the counts.

    Raises `AdapterError`: before the first request where the workload, a route or the collector is
    unusable, and at the end where spans could not be delivered. Give an `opener` to share loaded
    models between runs, and a journal to go on with a run. Interrupted, it sends what it has.
    """
    run = _Replay(rollout, notes or journal.unwritten(), progress or _show_nothing)
    return asyncio.run(run.run(opener or EngineOpener()))


def planned(rollout: Rollout) -> list[Turn]:
    """Return all turns that a run makes, the warm-up included; raises `WorkloadError`."""
    load = rollout.load
    prompts = workload.read(Path(rollout.workload))[: load.max_prompts]
    trace = traces.read(Path(load.file), load.max_requests) if load.file is not None else ()
    return list(turns(prompts, load, seed=rollout.sampling.seed, trace=trace))


class _Replay:
    def __init__(self, rollout: Rollout, notes: Journal, progress: Progress) -> None:
        self._rollout = rollout
        self._notes = notes
        self._progress = progress
        self._turns = planned(rollout)
        self._total = sum(not turn.warmup for turn in self._turns)
        self._left = list(self._open_turns())
        self._resumed = self._total - sum(not turn.warmup for turn in self._left)
        self._workload = _workload_of(self._turns)
        self._made = self._failed = 0
        self._arms = {arm: ArmCounts() for arm in Arm}
        self._lags_s: list[float] = []

    def _open_turns(self) -> Iterator[Turn]:
        """Yield what is to be answered: what was stored before is not, nor then the warm-up."""
        missing = [turn for turn in self._turns if not turn.warmup and not self._notes.holds(turn)]
        if missing:
            yield from (turn for turn in self._turns if turn.warmup)
            yield from missing

    async def run(self, opener: EngineOpener) -> RunCounts:
        """Run from start to delivery."""
        rollout = self._rollout
        if not self._left:
            return RunCounts(0, 0, self._resumed)
        require_collector(rollout.collector.url)  # before any model is loaded
        async with AsyncExitStack() as opened:
            sender = SpanSender(rollout.collector.url, stored=self._notes.stored)
            opened.enter_context(closing(sender))
            engines: dict[Arm, Engine] = {}
            for arm, route in zip(Arm, (rollout.baseline, rollout.candidate), strict=True):
                engines[arm] = await _opened(route, rollout, opener)
                opened.push_async_callback(engines[arm].close)
            self._progress(RunProgress(None, self._resumed, self._total))
            sampler = EngineSampler(
                await _sources(rollout, engines),
                rollout=rollout.rollout,
                collector_url=rollout.collector.url,
                gpus=GpuReader(),
            )
            await opened.enter_async_context(sampler)
            watch = await opened.enter_async_context(LoopWatch())
            experiment = runner.Experiment(
                rollout=rollout.rollout,
                engines=engines,
                sampling=rollout.sampling,
                journal=self._notes,
            )

            def record(generation: Generation) -> None:
                sender.send(replace(generation, workload=self._workload))
                self._count(generation)

            concurrency = rollout.load.concurrency or (None if rollout.load.is_open else 1)
            await runner.run(experiment, self._left, concurrency=concurrency, record=record)
        return RunCounts(
            self._made,
            self._failed,
            self._resumed,
            generator_lag.summary(self._lags_s),
            generator_lag.summary(watch.lags_s),
            sampler.tally.sent,
            {arm.value: counts for arm, counts in self._arms.items()},
        )

    def _count(self, generation: Generation) -> None:
        self._made += 1
        self._failed += generation.error_type is not None
        if generation.arm is not None:
            self._arms[generation.arm].add(generation)
        if generation.client_lag_s is not None:
            self._lags_s.append(generation.client_lag_s)
        self._progress(RunProgress(generation, self._resumed + self._made, self._total))


def _workload_of(planned: Iterable[Turn]) -> str:
    """Return how many pairs each cohort is to have, as spans tell it."""
    pairs = {
        (turn.prompt.id, turn.repeat): turn.prompt.cohort for turn in planned if not turn.warmup
    }
    return json.dumps(Counter(pairs.values()), sort_keys=True)


async def _opened(route: Route, rollout: Rollout, opener: EngineOpener) -> Engine:
    if rollout.load.processes == "per_arm":
        return await ArmProcess.open(route)
    return await opener.open(route)


async def _sources(rollout: Rollout, engines: Mapping[Arm, Engine]) -> list[Source]:
    """Return the pages of metrics that the routes have."""
    found = []
    for arm, route in zip(Arm, (rollout.baseline, rollout.candidate), strict=True):
        url = (await engines[arm].probe()).metrics_url
        if url is not None:
            found.append(Source(arm, url, engines[arm].info.provider))
        if isinstance(route, HttpRoute) and route.gpu_metrics_url is not None:
            found.append(Source(arm, route.gpu_metrics_url, "dcgm"))
    return found


def _show_nothing(_step: RunProgress) -> None:
    """Show nothing."""
