"""Measure streams with Draftgate's HTTP engine in its own process; prints JSON.

python -m benchmarks.streams.measuring_process URL STREAMS REQUESTS
"""

import asyncio
import json
import resource
import sys
from itertools import pairwise

from engine_adapter import garbage
from engine_adapter.engines import Engine, EngineOpener, Request
from engine_adapter.engines.observation import ObservedAnswer, observe
from engine_adapter.messages import Message
from engine_adapter.routes import HttpRoute
from engine_adapter.run.runner import RAMP_S


def main() -> None:
    """Answer REQUESTS requests, STREAMS at a time, and print one JSON document."""
    url, streams, requests = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(asyncio.run(_measure(url, streams, requests))))


async def _measure(url: str, streams: int, requests: int) -> dict[str, object]:
    # Opened before the measurement: this imports the HTTP stack, a second of CPU time.
    engine = await EngineOpener().open(HttpRoute(engine="openai", model="m", url=url))
    before_s = _cpu_s()
    with garbage.loaded_set_aside():  # as `draftgate run` does
        answers = await _answers(engine, streams, requests)
    cpu_s = _cpu_s() - before_s
    await engine.close()
    return {"cpu_s": cpu_s, "answers": answers}


async def _answers(engine: Engine, streams: int, requests: int) -> list[dict[str, object]]:
    slots = asyncio.Semaphore(streams)
    found: list[dict[str, object]] = []

    async def one(number: int) -> None:
        async with slots:
            message = Message(role="user", content=f"request {number}")
            request = Request(messages=(message,), max_tokens=1000)
            found.append(_times(number, await observe(engine, request, concurrency=1, due_s=None)))

    async with asyncio.TaskGroup() as group:
        for number in range(requests):
            if number < streams:
                await asyncio.sleep(RAMP_S)  # as `draftgate run` does
            group.create_task(one(number))
    return found


def _times(number: int, seen: ObservedAnswer) -> dict[str, object]:
    gaps_s = [later - earlier for earlier, later in pairwise(seen.chunk_times_s)]
    return {"name": f"request {number}", "ttft_s": seen.ttft_s, "gaps_s": gaps_s}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
