"""The order in which the arms answer the prompts.

Interleaved, because a drift of the machine would otherwise be read as a difference of the arms.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from collector.contract import Arm
from engine_adapter.workload import Prompt


@dataclass(frozen=True, slots=True)
class Turn:
    """One request that one arm has to answer."""

    prompt: Prompt
    repeat: int
    arm: Arm
    warmup: bool = False
    """A warm-up turn is answered and not recorded."""


def turns(
    prompts: Sequence[Prompt], *, repeats: int, order: str, warmup: int, seed: int
) -> Iterator[Turn]:
    """Yield the warm-up turns of both arms, then every prompt's pair of turns, repeat by repeat.

    `abba` swaps the arms from one pair to the next, so that a linear drift cancels; `random` draws
    each pair's order from `seed`.
    """
    for prompt in islice(cycle(prompts), warmup):
        for arm in Arm:
            yield Turn(prompt, 0, arm, warmup=True)
    drawn = random.Random(seed)  # noqa: S311  # an experiment's order, not a secret
    swap = False
    for repeat in range(repeats):
        for prompt in prompts:
            if order == "random":
                swap = drawn.random() < 0.5
            arms = (Arm.CANDIDATE, Arm.BASELINE) if swap else (Arm.BASELINE, Arm.CANDIDATE)
            yield from (Turn(prompt, repeat, arm) for arm in arms)
            if order == "abba":
                swap = not swap
