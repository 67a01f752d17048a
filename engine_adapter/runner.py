"""Run turns against two engines, and hand on what came of each, as generations."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from collector.contract import Arm, Generation
from engine_adapter import recording
from engine_adapter.engines import Engine, Request
from engine_adapter.observation import observe
from engine_adapter.rollout_file import Sampling
from engine_adapter.schedule import Turn
from engine_adapter.telemetry import new_span_id, new_trace_id
from engine_adapter.workload import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What every generation of a run has in common."""

    rollout: str
    engines: Mapping[Arm, Engine]
    sampling: Sampling
    service_version: str


async def run(
    experiment: Experiment,
    schedule: Iterable[Turn],
    *,
    concurrency: int,
    record: Callable[[Generation], None],
) -> None:
    """Answer the turns in a closed loop, and give `record` each that counts, as it is answered.

    `concurrency` requests are in flight, the next begins when one ends. A failed request is a
    generation with an `error_type`; warm-up turns are answered and not recorded.
    """
    slots = asyncio.Semaphore(concurrency)
    in_flight = 0

    async def answer(turn: Turn) -> None:
        nonlocal in_flight
        in_flight += 1
        try:
            request = _request(turn.prompt, experiment.sampling, turn.repeat)
            engine = experiment.engines[turn.arm]
            observed = await observe(engine, request, concurrency=in_flight, due_s=None)
            if not turn.warmup:
                record(
                    recording.record(
                        turn,
                        request,
                        observed,
                        info=engine.info,
                        rollout=experiment.rollout,
                        service_version=experiment.service_version,
                    )
                )
        finally:
            in_flight -= 1
            slots.release()

    async with asyncio.TaskGroup() as group:
        for turn in schedule:
            await slots.acquire()
            group.create_task(answer(turn))


def _request(prompt: Prompt, sampling: Sampling, repeat: int) -> Request:
    return Request(
        messages=prompt.chat,
        max_tokens=prompt.max_tokens or sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        seed=sampling.seed + repeat,
        trace_id=new_trace_id(),
        span_id=new_span_id(),
    )
