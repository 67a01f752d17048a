"""Run turns against two engines, and record each answer as a generation."""

import asyncio
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from collector.contract import Generation
from engine_adapter import garbage
from engine_adapter.engines import Engine, Request
from engine_adapter.engines.observation import ObservedAnswer, observe
from engine_adapter.errors import GenerationError
from engine_adapter.run import conversation, recording
from engine_adapter.run.journal import Journal, SpanIds, unwritten
from engine_adapter.run.requests import request_of
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.run.schedule import Turn

_COARSE_S = 0.002
"""A sleep may last a millisecond too long, so the last stretch before a due time is polled."""

RAMP_S = 0.004
"""Pause between the first requests of a closed loop: opening hundreds of connections at once would
keep this process from reading the first answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Values that all generations of a run share."""

    rollout: str
    engines: Mapping[str, Engine]
    """By arm."""
    sampling: Sampling = field(default_factory=Sampling)
    journal: Journal = field(default_factory=unwritten)
    rollouts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By arm: the rollouts in which its answers count, if it is not `rollout` alone."""


Record = Callable[[Generation], None]
Failed = Callable[[str, GenerationError], None]
"""Called with the arm and the error of each failed request, before its generation is recorded."""
Ended = Callable[[list[Generation]], None]
"""Called with the turns of a session of an arm, after the last one; copies are among them."""


async def run(
    experiment: Experiment,
    schedule: Iterable[Turn],
    *,
    concurrency: int | None,
    record: Record,
    ended: Ended = lambda _turns: None,
    failed: Failed = lambda _arm, _error: None,
) -> None:
    """Answer the turns, and call `record` with each generation as it completes.

    A turn without a due time begins as soon as fewer than `concurrency` requests of its arm are in
    flight (a closed loop); with a concurrency of 1, the arms take turns. A turn with a due time
    begins at that time; if it has to wait for one of its arm's slots, its latency still counts from
    the due time. `None` is no limit. A failed request is a generation with an `error_type`. Warm-up
    turns are answered but not recorded, and all of them end before the first counted turn begins.

    The arms do not share slots: requests would gather at the slower arm, whose latency would then
    run away.

    The turns of a session of an arm stand together in the schedule and are asked one after the
    other. In a closed loop a session keeps its slot while its user thinks.
    """
    turns = list(schedule)
    warmup = [turn for turn in turns if turn.warmup]
    counted = [turn for turn in turns if not turn.warmup]
    told = _Listeners(record, ended, failed)
    await _Run(experiment, concurrency or 1, told).answer_all(warmup, _Clock())
    clock = _Clock()
    with garbage.loaded_set_aside():
        async with asyncio.TaskGroup() as group:
            for loop in _loops(counted, concurrency):
                arm_run = _Run(experiment, concurrency, told)
                group.create_task(arm_run.answer_all(loop, clock))


def _loops(turns: list[Turn], concurrency: int | None) -> list[list[Turn]]:
    """Return each arm's turns, the arm whose first turn stands first before the others.

    In a closed loop of one request, all turns in their order.
    """
    if concurrency == 1 and all(turn.due_s is None for turn in turns):
        return [turns]
    found: dict[str, list[Turn]] = {}
    for turn in turns:
        found.setdefault(turn.arm, []).append(turn)
    return list(found.values())


class _Clock:
    """Reads due times, for all arms alike; a resumed run begins with its first open turn."""

    _offset_s: float | None = None

    def read(self, due_s: float) -> float:
        """Return a due time by `time.perf_counter`; the first one asked for is soon."""
        if self._offset_s is None:
            self._offset_s = time.perf_counter() + _COARSE_S - due_s
        return self._offset_s + due_s


class _Listeners(NamedTuple):
    record: Record
    ended: Ended
    failed: Failed


class _Run:
    """Turns that share slots."""

    def __init__(self, experiment: Experiment, concurrency: int | None, told: _Listeners) -> None:
        self._experiment = experiment
        self._told = told
        self._concurrency = concurrency
        self._slots = None if concurrency is None else asyncio.Semaphore(concurrency)
        self._in_flight = 0

    async def answer_all(self, turns: Iterable[Turn], clock: _Clock) -> None:
        unused_slots = self._concurrency or 0
        async with asyncio.TaskGroup() as group:
            for session in conversation.in_sessions(turns):
                turn, due_s = session[0], None
                if turn.due_s is not None:
                    due_s = clock.read(turn.due_s)
                    await _until(due_s)
                elif self._slots is not None:
                    await self._slots.acquire()
                    if unused_slots > 0:  # a slot's first request
                        unused_slots -= 1
                        await asyncio.sleep(RAMP_S)
                group.create_task(self._converse(session, due_s))

    async def _converse(self, session: list[Turn], due_s: float | None) -> None:
        """Answer the turns of a session, which is due at that time or has a slot."""
        try:
            made = await self._answered(session, due_s)
        finally:
            if due_s is None and self._slots is not None:
                self._slots.release()
        if session[0].session is not None and session[0].sentinel is None and made:
            self._told.ended(made)

    async def _answered(self, session: list[Turn], due_s: float | None) -> list[Generation]:
        is_open, started_s = due_s is not None, time.perf_counter() if due_s is None else due_s
        history = conversation.OwnHistory() if session[0].own_history else None
        made: list[Generation] = []
        for place, planned in enumerate(session):
            if place:
                due_s = conversation.due_s(
                    session[0], planned, started_s=started_s, ended_s=time.perf_counter()
                )
                await _until(due_s)
            turn = planned if history is None else history.asked(planned)
            observed = await self._answer(turn, due_s if is_open else None)
            made += self._recorded(turn, observed)
            if history is None:
                continue
            if observed.error is not None:
                if not turn.is_end:
                    made += self._recorded(history.broken_off(session[-1]), _unasked(observed))
                break
            history.heard(observed)
        return made

    async def _answer(self, turn: Turn, due_s: float | None) -> ObservedAnswer:
        waits = due_s is not None and self._slots is not None
        if waits and self._slots is not None:
            await self._slots.acquire()
        self._in_flight += 1
        try:
            engine = self._experiment.engines[turn.arm]
            request = self._request(turn)
            return await observe(engine, request, concurrency=self._in_flight, due_s=due_s)
        finally:
            self._in_flight -= 1
            if waits and self._slots is not None:
                self._slots.release()

    def _request(self, turn: Turn) -> Request:
        experiment = self._experiment
        ids = experiment.journal.ids(turn, turn.copies[0])
        return _request(turn, experiment.sampling, ids)

    def _recorded(self, turn: Turn, observed: ObservedAnswer) -> list[Generation]:
        """Record an answer in each of its rollouts; nothing for one of the warm-up."""
        if turn.warmup:
            return []
        experiment = self._experiment
        engine = experiment.engines[turn.arm]
        rollouts = experiment.rollouts.get(turn.arm, (experiment.rollout,))
        first, *others = turn.copies
        made = recording.record(
            turn,
            engine.request_body(self._request(turn)),
            observed,
            ids=experiment.journal.ids(turn, first),
            info=engine.info,
            rollout=rollouts[first],
        )
        every = [made]
        for copy in others:
            trace_id, span_id = experiment.journal.ids(turn, copy)
            every.append(replace(made, rollout=rollouts[copy], trace_id=trace_id, span_id=span_id))
        if observed.error is not None:
            self._told.failed(turn.arm, observed.error)
        for one in every:
            self._told.record(one)
        return every


def _unasked(failed: ObservedAnswer) -> ObservedAnswer:
    """Return the failure of a session's end that was not asked for, after an earlier turn's."""
    return ObservedAnswer(
        concurrency=failed.concurrency,
        due_s=None,
        started_s=failed.ended_s,
        ended_s=failed.ended_s,
        error=failed.error,
    )


async def _until(due_s: float) -> None:
    """Sleep until `due_s`; wakes well under a millisecond late unless the process is busy."""
    wait_s = due_s - time.perf_counter() - _COARSE_S
    if wait_s > 0:
        await asyncio.sleep(wait_s)
    while time.perf_counter() < due_s:  # noqa: ASYNC110  # a clock has no event to wait for
        await asyncio.sleep(0)


def _seed(turn: Turn, sampling: Sampling) -> int:
    """Return the seed of a prompt and repeat, the same for both arms.

    With one seed for all, engines would draw the same random numbers for every prompt, and answers
    would not be independent. A prompt's own seed is used as given, plus the repeat's number.
    A sentinel has the same seed each time.
    """
    if turn.sentinel is not None:
        return turn.prompt.seed or sampling.seed
    if turn.prompt.seed is not None:
        return turn.prompt.seed + turn.repeat
    return (sampling.seed + turn.repeat + zlib.crc32(turn.prompt.id.encode())) & 0x7FFFFFFF


def _request(turn: Turn, sampling: Sampling, ids: SpanIds) -> Request:
    request = request_of(turn.prompt, sampling, _seed(turn, sampling))
    if turn.warmup:  # it has no span that an engine's own span could join
        return request
    return replace(request, trace_id=ids.trace_id, span_id=ids.span_id)
