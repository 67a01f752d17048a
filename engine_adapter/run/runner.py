"""Run turns against two engines, and hand on what came of each, as generations."""

import asyncio
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from collector.contract import Arm, Generation
from engine_adapter import garbage
from engine_adapter.engines import Engine, Request
from engine_adapter.engines.observation import observe
from engine_adapter.run import recording
from engine_adapter.run.journal import Journal, SpanIds
from engine_adapter.run.requests import request_of
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.run.schedule import Turn

_COARSE_S = 0.002
"""A sleep may last a millisecond longer than asked; the rest before a due time is spent awake."""

RAMP_S = 0.004
"""Between the first requests of a closed loop: hundreds of connections that are opened at once
keep this process from reading what the first of them are answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What every generation of a run has in common."""

    rollout: str
    engines: Mapping[Arm, Engine]
    sampling: Sampling
    journal: Journal


Record = Callable[[Generation], None]


async def run(
    experiment: Experiment, schedule: Iterable[Turn], *, concurrency: int | None, record: Record
) -> None:
    """Answer the turns, and give `record` each that counts, as it is answered.

    A turn without a due time begins as soon as fewer than `concurrency` requests are in flight
    (a closed loop); one with a due time begins then, and where it has to wait for a place, its
    latency counts from the due time all the same. `None` is no limit. A failed request is a
    generation with an `error_type`; warm-up turns are answered and not recorded, and over before
    the first turn that counts.
    """
    warmup, counted = _split(schedule)
    await _Run(experiment, concurrency or 1, record).answer_all(warmup)
    with garbage.loaded_set_aside():
        await _Run(experiment, concurrency, record).answer_all(counted)


def _split(schedule: Iterable[Turn]) -> tuple[list[Turn], Iterable[Turn]]:
    """Return the warm-up turns, which come first, and the others."""
    turns = iter(schedule)
    warmup: list[Turn] = []
    for turn in turns:
        if not turn.warmup:
            return warmup, _chained(turn, turns)
        warmup.append(turn)
    return warmup, ()


def _chained(first: Turn, rest: Iterable[Turn]) -> Iterable[Turn]:
    yield first
    yield from rest


class _Run:
    """One phase of a run, in one event loop."""

    def __init__(self, experiment: Experiment, concurrency: int | None, record: Record) -> None:
        self._experiment = experiment
        self._record = record
        self._concurrency = concurrency
        self._slots = None if concurrency is None else asyncio.Semaphore(concurrency)
        self._in_flight = 0

    async def answer_all(self, turns: Iterable[Turn]) -> None:
        offset_s: float | None = None
        places = self._concurrency or 0
        async with asyncio.TaskGroup() as group:
            for turn in turns:
                due_s = None
                if turn.due_s is not None:
                    if offset_s is None:  # a run that goes on begins with its first open turn
                        offset_s = time.perf_counter() + _COARSE_S - turn.due_s
                    due_s = offset_s + turn.due_s
                    await _until(due_s)
                elif self._slots is not None:
                    # In a closed loop a turn is taken when there is a place for it.
                    await self._slots.acquire()
                    if places > 0:  # one that was never taken
                        places -= 1
                        await asyncio.sleep(RAMP_S)
                group.create_task(self._answer(turn, due_s))

    async def _answer(self, turn: Turn, due_s: float | None) -> None:
        if due_s is not None and self._slots is not None:
            await self._slots.acquire()
        self._in_flight += 1
        try:
            experiment = self._experiment
            ids = experiment.journal.ids(turn)
            request = _request(turn, experiment.sampling, ids)
            engine = experiment.engines[turn.arm]
            observed = await observe(engine, request, concurrency=self._in_flight, due_s=due_s)
        finally:
            self._in_flight -= 1
            if self._slots is not None:
                self._slots.release()
        if not turn.warmup:
            self._record(
                recording.record(
                    turn,
                    engine.asked(request),
                    observed,
                    ids=ids,
                    info=engine.info,
                    rollout=experiment.rollout,
                )
            )


async def _until(due_s: float) -> None:
    """Sleep until the clock reads `due_s`, to well below a millisecond where it is not busy."""
    wait_s = due_s - time.perf_counter() - _COARSE_S
    if wait_s > 0:
        await asyncio.sleep(wait_s)
    while time.perf_counter() < due_s:  # noqa: ASYNC110  # no event tells the time
        await asyncio.sleep(0)


def _seed(turn: Turn, sampling: Sampling) -> int:
    """Return a seed of each prompt and repeat, the same for both arms.

    One seed for all would make engines draw the same random numbers for every prompt, so that
    answers were not independent of each other. A prompt's own is taken as it is.
    """
    if turn.prompt.seed is not None:
        return turn.prompt.seed + turn.repeat
    return (sampling.seed + turn.repeat + zlib.crc32(turn.prompt.id.encode())) & 0x7FFFFFFF


def _request(turn: Turn, sampling: Sampling, ids: SpanIds) -> Request:
    request = request_of(turn.prompt, sampling, _seed(turn, sampling))
    if turn.warmup:  # it has no span that an engine's own could join
        return request
    return replace(request, trace_id=ids.trace_id, span_id=ids.span_id)
