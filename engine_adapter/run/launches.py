"""Division of a run's turns among the launches of the servers.

A prompt and all its repeats belong to one launch, so that launches are independent of each other.
The prompts of each cohort are dealt out round-robin, so that every launch has a share of each.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from collector.contract import Arm
from engine_adapter.errors import WorkloadError
from engine_adapter.run.load_shape import Load
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.schedule import Turn, turns
from engine_adapter.run.sentinels import Sentinel
from engine_adapter.run.traces import Arrival
from engine_adapter.sessions import grouped
from engine_adapter.workload import Prompt

Serve = Callable[[int], AbstractContextManager[Rollout]]
"""Serves all routes for a launch, counted from 0; yields the rollout with the servers' URLs."""


def shares(
    prompts: Sequence[Prompt],
    load: Load,
    *,
    seed: int,
    trace: Sequence[Arrival] = (),
    arms: Sequence[str] = tuple(Arm),
    sentinels: Sequence[Sentinel] = (),
) -> list[list[Turn]]:
    """Return the turns of each launch, each with its own warm-up first.

    A trace is cut into consecutive pieces of equal length, one per launch. Raises `WorkloadError`
    if a launch would have nothing to answer.
    """
    hands = _dealt(prompts, load.launches)
    pieces = [_piece(trace, number, load.launches) for number in range(load.launches)]
    shortest = min(map(len, pieces if load.mode == "trace" else hands))
    if shortest == 0 and load.launches > 1:
        raise WorkloadError(
            f"load.launches: {load.launches} launches, and {len(prompts)} prompts"
            f"{f', {len(trace)} requests of a trace' if trace else ''}; wanted one for each launch"
        )
    found = list[list[Turn]]()
    for number, (hand, piece) in enumerate(zip(hands, pieces, strict=True)):
        asked = turns(hand, load, seed=seed + number, trace=piece, arms=arms, sentinels=sentinels)
        found.append(_numbered(asked, first=sum(map(len, found))))
    return found


def _numbered(asked: Iterable[Turn], *, first: int) -> list[Turn]:
    """Return a launch's turns, the numbers of its sentinels counted from `first`."""
    return [
        turn if turn.sentinel is None else replace(turn, repeat=first + turn.repeat)
        for turn in asked
    ]


def _dealt(prompts: Sequence[Prompt], launches: int) -> list[list[Prompt]]:
    """Return each launch's prompts, in the workload's order; sessions stay whole."""
    sessions = grouped(prompts)
    by_cohort = sorted(range(len(sessions)), key=lambda place: sessions[place][0].cohort)
    hands = (sorted(by_cohort[number::launches]) for number in range(launches))
    return [[prompt for place in hand for prompt in sessions[place]] for hand in hands]


def _piece(trace: Sequence[Arrival], number: int, launches: int) -> Sequence[Arrival]:
    return trace[len(trace) * number // launches : len(trace) * (number + 1) // launches]
