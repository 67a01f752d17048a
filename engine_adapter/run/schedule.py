"""The order and the due times of the arms' turns.

The arms are interleaved, because a drift of the machine would otherwise look like a difference
between the arms.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from collector.contract import Arm
from engine_adapter.run.arrival_times import times_s
from engine_adapter.run.load_shape import Load
from engine_adapter.run.trace_prompts import shaped
from engine_adapter.run.traces import Arrival
from engine_adapter.workload import Prompt


@dataclass(frozen=True, slots=True)
class Turn:
    """One request to one arm."""

    prompt: Prompt
    repeat: int
    arm: Arm
    warmup: bool = False
    """A warm-up turn is answered but not recorded."""
    due_s: float | None = None
    """Arrival time since the run began; `None` means as soon as a slot is free."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One prompt and repeat, answered by both arms."""

    prompt: Prompt
    repeat: int
    due_s: float | None = None


def turns(
    prompts: Sequence[Prompt], load: Load, *, seed: int, trace: Sequence[Arrival] = ()
) -> Iterator[Turn]:
    """Yield the warm-up turns of both arms, then the pair of turns of each visit.

    `abba` swaps the arms from one pair to the next, so that a linear drift cancels; `random` draws
    each pair's order from `seed`. In an open loop both turns of a pair arrive at the same time, so
    that each arm gets the whole traffic.
    """
    for prompt in islice(cycle(prompts), load.warmup):
        for arm in Arm:
            yield Turn(prompt, 0, arm, warmup=True)
    drawn = random.Random(seed)  # noqa: S311  # an experiment's order, not a secret
    swap = False
    for visit in visits(prompts, load, seed=seed, trace=trace):
        if load.order == "random":
            swap = drawn.random() < 0.5
        arms = (Arm.CANDIDATE, Arm.BASELINE) if swap else (Arm.BASELINE, Arm.CANDIDATE)
        for arm in arms:
            yield Turn(visit.prompt, visit.repeat, arm, due_s=visit.due_s)
        if load.order == "abba":
            swap = not swap


def visits(
    prompts: Sequence[Prompt], load: Load, *, seed: int, trace: Sequence[Arrival] = ()
) -> Iterator[Visit]:
    """Yield each prompt once per repeat, with its arrival time in an open loop."""
    if load.mode == "trace":
        for number, arrival in enumerate(trace):
            repeat, place = divmod(number, len(prompts))
            prompt = shaped(prompts[place], arrival, load.lengths or "output")
            yield Visit(prompt, repeat, arrival.at_s / (load.speed or 1.0))
        return
    pairs = ((prompt, repeat) for repeat in range(load.repeats) for prompt in prompts)
    if load.is_open:
        for (prompt, repeat), due_s in zip(pairs, times_s(load, seed), strict=False):
            yield Visit(prompt, repeat, due_s)
    else:
        for prompt, repeat in pairs:
            yield Visit(prompt, repeat)
