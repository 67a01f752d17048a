"""Run a rollout file's experiment from start to delivery."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, closing, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from collector.contract import Arm, Generation
from engine_adapter.engines import Engine, EngineOpener
from engine_adapter.engines.arm_process import ArmProcess
from engine_adapter.engines.gpu_samples import GpuReader
from engine_adapter.errors import GenerationError
from engine_adapter.routes import HttpRoute, Route
from engine_adapter.run import generator_lag, journal, launches, runner, sentinels, traces
from engine_adapter.run.arm_counts import ArmCounts
from engine_adapter.run.conversation import root_span
from engine_adapter.run.engine_samples import EngineSampler, MetricsPage
from engine_adapter.run.generator_lag import Lag, LoopWatch
from engine_adapter.run.journal import Journal
from engine_adapter.run.launches import Serve
from engine_adapter.run.look_plan import LookPlan
from engine_adapter.run.phases import AtOnce, LookByLook, UntilDecided
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.rollout_file import sessions as of_rollout
from engine_adapter.run.schedule import Turn
from engine_adapter.run.telemetry import SpanSender, require_collector


class RunCounts(NamedTuple):
    """Counts of a run, and the delays of the load generator itself."""

    generations: int
    failed: int
    resumed: int = 0
    """Generations stored by an earlier attempt."""
    send_lag: Lag = generator_lag.summary(())
    """How late requests were sent; measured in open loops."""
    loop_lag: Lag = generator_lag.summary(())
    """How late the event loop of this process woke a task."""
    engine_samples: int = 0
    """Stored samples of the engines' gauges and of this machine's GPUs."""
    budget_reached: bool = False
    """Whether it ended because the budget was used up."""
    arms: Mapping[str, ArmCounts] = {}
    """By arm; of this attempt alone."""

    @property
    def failures(self) -> tuple[str, ...]:
        """One sentence for each arm that mostly failed: how many answers, and the last error."""
        return tuple(
            f"the {arm} failed in {counts.failed} of {counts.generations} answers, "
            f"lastly with {counts.last_error}"
            for arm, counts in self.arms.items()
            if counts.mostly_failed
        )

    @property
    def suspicions(self) -> tuple[str, ...]:
        """Sentences on arms that look broken although their answers did not fail."""
        return tuple(f"the {arm}: {one}" for arm, of in self.arms.items() for one in of.suspicions)


class RunProgress(NamedTuple):
    """Progress of a run."""

    generation: Generation | None
    """The latest generation; `None` while the arms start and warm up."""
    done: int
    total: int
    launch: int = 1
    launches: int = 1
    """Total number of launches of the arms' servers."""


Progress = Callable[[RunProgress], None]


def replay(
    rollout: Rollout,
    *,
    opener: EngineOpener | None = None,
    progress: Progress = lambda _step: None,
    notes: Journal | None = None,
    serve: Serve | None = None,
    until: UntilDecided | None = None,
) -> RunCounts:
    """Answer the workload on both routes, send every generation, and return the counts.

    Raises `AdapterError`: before the first request if the workload, a route or the collector is
    unusable, and at the end if spans could not be delivered. Give an `opener` to share loaded
    models between runs, `notes` (a journal) to resume a run, `serve` to start servers for each
    launch, and `until` to answer look after look until the run is decided. If interrupted, it sends
    the generations that it has.
    """
    opener, serve = opener or EngineOpener(), serve or (lambda _launch: nullcontext(rollout))
    notes = notes or journal.unwritten()
    if until is None:
        return _Replay(rollout, notes, progress, planned(rollout)).run(opener, serve)
    looks = LookPlan(rollout)
    run = _Replay(rollout, notes, progress, [looks.all_turns()])
    return run.run_until_decided(opener, serve, looks, until)


def planned(rollout: Rollout) -> list[list[Turn]]:
    """Return the turns of each launch, its warm-up included; raises `WorkloadError`."""
    load = rollout.load
    sessions = of_rollout(rollout)
    prompts = [prompt for session in sessions for prompt in session]
    trace = traces.read(Path(load.file), load.max_requests) if load.file is not None else ()
    return launches.shares(
        prompts,
        load,
        seed=rollout.sampling.seed,
        trace=trace,
        arms=tuple(rollout.routes),
        sentinels=sentinels.chosen(sessions, load),
    )


class _Replay:
    def __init__(
        self, rollout: Rollout, notes: Journal, progress: Progress, plan: Sequence[Sequence[Turn]]
    ) -> None:
        self._rollout = rollout
        self._notes = notes
        self._progress = progress
        self._total = _counted(plan)
        self._left = [self._open_turns(turns) for turns in plan]
        self._resumed = self._total - _counted(self._left)
        self._workload = _workload_of(chain.from_iterable(plan))
        self._launch = self._made = self._sentinels = self._failed = self._samples = 0
        self._launches = len(plan)
        self._rollouts = {arm: rollout.rollouts_of(arm) for arm in rollout.routes}
        self._counted_in = {arm: names[0] for arm, names in self._rollouts.items()}
        self._candidates = {of: arm for arm, names in self._rollouts.items() for of in names}
        self._arms = {arm: ArmCounts() for arm in rollout.routes}
        self._send_lags_s: list[float] = []
        self._loop_lags_s: list[float] = []

    def _open_turns(self, turns: Sequence[Turn]) -> list[Turn]:
        """Return the turns left to answer: none, not even the warm-up, if all are stored."""
        missing = self._notes.left(turn for turn in turns if not turn.warmup)
        return [turn for turn in turns if turn.warmup] + missing if missing else []

    def run(self, opener: EngineOpener, serve: Serve) -> RunCounts:
        """Answer and deliver every launch in turn, and return the counts."""
        if any(self._left):
            require_collector(self._rollout.collector.url)  # before any model is loaded
        for number, turns in enumerate(self._left):
            if turns:
                self._launch = number
                self._show(None)
                with serve(number) as served:
                    asyncio.run(self._answer(served, AtOnce(turns), opener))
        return self._counts()

    def run_until_decided(
        self, opener: EngineOpener, serve: Serve, plan: LookPlan, until: UntilDecided
    ) -> RunCounts:
        """Answer and deliver look after look until the run is decided, and return the counts."""
        require_collector(self._rollout.collector.url)  # before any model is loaded
        phases = LookByLook(plan, until, self._open_turns)
        phases.begin()
        self._launches = self._rollout.load.launches
        while phases.current is not None:
            self._launch = phases.launch
            self._show(None)
            with serve(self._launch) as served:
                asyncio.run(self._answer(served, phases, opener))
        return self._counts()._replace(budget_reached=phases.budget_reached)

    def _counts(self) -> RunCounts:
        return RunCounts(
            self._made,
            self._failed,
            self._resumed,
            generator_lag.summary(self._send_lags_s),
            generator_lag.summary(self._loop_lags_s),
            self._samples,
            arms=self._arms if self._made else {},
        )

    async def _answer(self, served: Rollout, phases: AtOnce, opener: EngineOpener) -> None:
        """Answer one launch's turns, phase after phase, and deliver them."""
        async with AsyncExitStack() as opened:
            sender = SpanSender(served.collector.url, stored=self._notes.stored)
            opened.enter_context(closing(sender))
            engines: dict[str, Engine] = {}
            for arm, route in served.routes.items():
                engines[arm] = await _opened(route, served, opener)
                opened.push_async_callback(engines[arm].close)
            self._show(None)
            samplers = [
                EngineSampler(
                    await _sources(served, engines, rollout),
                    rollout=rollout,
                    collector_url=served.collector.url,
                    gpus=GpuReader(),
                )
                for rollout in self._rollouts[Arm.BASELINE]
            ]
            for sampler in samplers:
                await opened.enter_async_context(sampler)
            experiment = runner.Experiment(
                rollout=served.rollout,
                engines=engines,
                sampling=served.sampling,
                journal=self._notes,
                rollouts=self._rollouts,
            )
            record = partial(self._record, sender, _launches(served))

            def ended(turns: list[Generation]) -> None:
                for rollout in dict.fromkeys(turn.rollout for turn in turns):
                    sender.send_span(root_span([t for t in turns if t.rollout == rollout]))

            concurrency = served.load.concurrency or (None if served.load.is_open else 1)
            while (turns := phases.current) is not None:
                self._count_in(turns)
                async with LoopWatch() as watch, phases.time_limit():
                    await runner.run(
                        experiment,
                        turns,
                        concurrency=concurrency,
                        record=record,
                        ended=ended,
                        failed=self._failed_with,
                    )
                self._loop_lags_s += watch.lags_s
                await asyncio.to_thread(phases.advance, sender.flush)
                if phases.relaunches:
                    break
            self._samples += sum(sampler.tally.sent for sampler in samplers)

    def _record(
        self, sender: SpanSender, launched: Mapping[str, str | None], made: Generation
    ) -> None:
        """Send one generation, and count it unless it is a copy."""
        candidate = self._candidates[str(made.rollout)]
        side = Arm.BASELINE if made.arm is Arm.BASELINE else Arm.CANDIDATE
        arm = candidate if side is Arm.CANDIDATE else side.value
        prices = self._rollout.prices
        stamped = replace(
            made,
            workload=self._workload,
            change=self._rollout.change_of(candidate).value,
            launch=launched[arm],
            price=None if prices is None else prices.of(side),
        )
        sender.send(
            stamped,
            None if made.conversation_id is None else journal.root_of(made.trace_id),
        )
        if made.rollout != self._counted_in[arm]:
            return
        self._made += 1
        self._sentinels += made.sentinel is not None
        self._failed += made.error_type is not None
        self._arms[arm].add(made)
        if made.client_lag_s is not None:
            self._send_lags_s.append(made.client_lag_s)
        self._show(made)

    def _count_in(self, turns: Iterable[Turn]) -> None:
        """Count each answer to these turns in the first of its rollouts."""
        self._counted_in |= {turn.arm: self._rollouts[turn.arm][turn.copies[0]] for turn in turns}

    def _failed_with(self, arm: str, error: GenerationError) -> None:
        self._arms[arm].errors[error.error_type] = str(error)

    def _show(self, newest: Generation | None) -> None:
        done = self._resumed + self._made - self._sentinels
        self._progress(RunProgress(newest, done, self._total, self._launch + 1, self._launches))


def _counted(plan: Iterable[Iterable[Turn]]) -> int:
    """Return the number of turns without those of the warm-up and of sentinels."""
    return sum(not turn.warmup and turn.sentinel is None for turns in plan for turn in turns)


def _launches(rollout: Rollout) -> dict[str, str | None]:
    """Return the launch name of each arm's server; `None` if the route names none."""
    return {
        arm: route.launch if isinstance(route, HttpRoute) else None
        for arm, route in rollout.routes.items()
    }


def _workload_of(planned: Iterable[Turn]) -> str:
    """Return the planned number of pairs per cohort, as the JSON that spans carry."""
    pairs = {
        (turn.prompt.id, turn.repeat): turn.prompt.cohort
        for turn in planned
        if turn.is_end and not turn.warmup
    }
    return json.dumps(Counter(pairs.values()), sort_keys=True)


async def _opened(route: Route, rollout: Rollout, opener: EngineOpener) -> Engine:
    if rollout.load.processes == "per_arm":
        return await ArmProcess.open(route)
    return await opener.open(route)


async def _sources(
    served: Rollout, engines: Mapping[str, Engine], rollout: str
) -> list[MetricsPage]:
    """Return the metrics pages of the routes whose answers count in a rollout."""
    found = []
    for name, route in served.routes.items():
        if rollout not in served.rollouts_of(name):
            continue
        arm = Arm.BASELINE if name == Arm.BASELINE else Arm.CANDIDATE
        url = (await engines[name].probe()).metrics_url
        if url is not None:
            found.append(MetricsPage(arm, url, engines[name].info.provider))
        if isinstance(route, HttpRoute) and route.gpu_metrics_url is not None:
            found.append(MetricsPage(arm, route.gpu_metrics_url, "dcgm"))
    return found
