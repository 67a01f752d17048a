"""Arrival times of an open loop, in seconds since the run began."""

import random
from collections.abc import Iterator
from itertools import count

from engine_adapter.run.load_shape import Load


def times_s(load: Load, seed: int) -> Iterator[float]:
    """Yield arrival times without end, at `load.rate` requests per second.

    `poisson` draws exponential gaps from the seed; `constant` spaces requests evenly; `burst`
    sends `burst_size` requests (default 8) at once, at intervals that keep the rate.
    """
    rate = load.rate or 0.0
    if load.mode == "poisson":
        drawn = random.Random(seed)  # noqa: S311  # an experiment's arrivals, not a secret
        now_s = 0.0
        while True:
            yield now_s
            now_s += drawn.expovariate(rate)
    size = (load.burst_size or 8) if load.mode == "burst" else 1
    for number in count():
        for _ in range(size):
            yield number * size / rate
