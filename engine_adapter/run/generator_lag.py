"""Delays of the load generator itself, which the engines' latencies do not show."""

import asyncio
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

_EVERY_S = 0.02


class Lag(NamedTuple):
    """Percentiles of delays in seconds; `None` if nothing was measured."""

    samples: int
    p50_s: float | None
    p99_s: float | None
    max_s: float | None


def summary(lags_s: Sequence[float]) -> Lag:
    """Return the nearest-rank percentiles."""
    if not lags_s:
        return Lag(0, None, None, None)
    ordered = sorted(lags_s)

    def rank(share: float) -> float:
        return ordered[math.ceil(share * len(ordered)) - 1]

    return Lag(len(ordered), rank(0.5), rank(0.99), ordered[-1])


class LoopWatch:
    """Measures how late the event loop wakes a sleeping task; an async context manager."""

    def __init__(self) -> None:
        self.lags_s: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "LoopWatch":
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while True:
            due_s = time.perf_counter() + _EVERY_S
            await asyncio.sleep(_EVERY_S)
            self.lags_s.append(max(0.0, time.perf_counter() - due_s))
