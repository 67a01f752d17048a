"""Answers to sentinels: prompts that a run asks again and again."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collector.contract import Arm, SentinelAsk

Marks = NDArray[np.bool_]


class Preceding(NamedTuple):
    """The requests of the workload that an arm was sent before a time."""

    requests: int
    prompt_id: str | None
    """The last of them; None without one."""


PrecedingOf = Callable[[SentinelAsk], Preceding]


class SentinelSeries(NamedTuple):
    """The answers of one launch of an arm to one sentinel, in the order of the requests."""

    sentinel: str
    arm: Arm
    launch: str | None
    asks: tuple[SentinelAsk, ...]
    """Those that were answered; one at least."""
    preceding: tuple[Preceding, ...]

    @property
    def changed(self) -> Marks:
        """Mask of the answers other than the most frequent one; of equals, the earliest."""
        answers = [ask.answer for ask in self.asks]
        usual, _ = Counter(answers).most_common(1)[0]
        return np.array([answer != usual for answer in answers], dtype=np.bool_)

    @property
    def after_neighbour(self) -> Marks:
        """Mask of the answers directly after a prompt of the same prefix."""
        return np.array([ask.after is not None for ask in self.asks], dtype=np.bool_)

    @property
    def first_change(self) -> int | None:
        """Index of the first answer that differs from the one before it."""
        answers = [ask.answer for ask in self.asks]
        return next((i for i in range(1, len(answers)) if answers[i] != answers[i - 1]), None)


def series_of(asks: Iterable[SentinelAsk], preceding: PrecedingOf) -> tuple[SentinelSeries, ...]:
    """Return the answers by sentinel, launch and arm, in this order."""
    grouped = defaultdict[tuple[str, str, Arm], list[SentinelAsk]](list)
    for ask in asks:
        if ask.answer is not None:
            grouped[ask.sentinel, ask.launch or "", ask.arm].append(ask)
    return tuple(
        _series(sorted(found, key=lambda ask: ask.start_unix_ns), preceding)
        for _, found in sorted(grouped.items())
    )


def asked_until(unix_ns: int, every: Iterable[SentinelSeries]) -> Iterator[SentinelSeries]:
    """Yield the series without requests that began later, and without series that lose all."""
    for one in every:
        kept = sum(ask.start_unix_ns <= unix_ns for ask in one.asks)
        if kept:
            yield one._replace(asks=one.asks[:kept], preceding=one.preceding[:kept])


def _series(asks: Sequence[SentinelAsk], preceding: PrecedingOf) -> SentinelSeries:
    first = asks[0]
    before = tuple(map(preceding, asks))
    return SentinelSeries(first.sentinel, first.arm, first.launch, tuple(asks), before)
