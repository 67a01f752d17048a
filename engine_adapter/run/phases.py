"""The phases of a run: all turns at once, or look after look until it is decided."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import NamedTuple

from collector.contract import Arm
from engine_adapter.errors import RolloutFileError
from engine_adapter.run.look_plan import LookPlan, Step
from engine_adapter.run.schedule import Turn

OpenTurns = Callable[[Sequence[Turn]], list[Turn]]
"""Returns the turns that are not stored yet."""


class Budget(NamedTuple):
    """The most that is spent on a run; `None`: no limit."""

    seconds: float | None = None
    """Since the call."""
    pairs: int | None = None
    """Stored by this attempt and by earlier ones; a look that would exceed it is not begun. Of
    several candidates each has pairs of its own."""


class UntilDecided(NamedTuple):
    """How a run ends when it is decided."""

    judge: Callable[[], Step]
    """Judges what the collector has; returns the looks to answer next, none at the end."""
    budget: Budget = Budget()


class AtOnce:
    """A single phase."""

    relaunches = False
    """Whether each phase has a launch of the servers of its own."""

    def __init__(self, turns: Sequence[Turn] | None) -> None:
        self.current = turns
        """The turns to answer now; `None` at the end."""

    def time_limit(self) -> AbstractAsyncContextManager[object]:
        """Return the context in which they are answered; it may end early."""
        return nullcontext()

    def advance(self, flush: Callable[[], None]) -> None:  # noqa: ARG002  # delivered at the end
        """Go on to the next phase; `flush` delivers the answers. May take seconds."""
        self.current = None


class LookByLook(AtOnce):
    """A phase for each look, until the run is decided or its budget is used up."""

    def __init__(self, plan: LookPlan, until: UntilDecided, open_turns: OpenTurns) -> None:
        super().__init__(None)
        self.budget_reached = False
        self.relaunches = plan.relaunches
        self._plan, self._until, self._open_turns = plan, until, open_turns
        self._step = Step({}, ())
        self._answered = dict[tuple[str, str], int]()
        seconds = until.budget.seconds
        self._ends_s = None if seconds is None else time.monotonic() + seconds
        every = plan.all_turns()
        self._pairs = _pairs(every) - _pairs(open_turns(every))

    @property
    def launch(self) -> int:
        """The number of the current phase's launch, from 0."""
        return max(self._step.looks.values(), default=1) - 1 if self.relaunches else 0

    def begin(self) -> None:
        """Judge what earlier attempts stored, and prepare the first phase."""
        self._prepare(self._until.judge(), warmup=True)

    @asynccontextmanager
    async def time_limit(self) -> AsyncIterator[None]:
        """End when the time is used up."""
        left_s = None if self._ends_s is None else self._ends_s - time.monotonic()
        try:
            async with asyncio.timeout(left_s):
                yield
        except TimeoutError:
            self.budget_reached = True

    def advance(self, flush: Callable[[], None]) -> None:
        """Deliver and judge the answers, and prepare the looks that come next.

        Raises `AdapterError` if spans were not accepted, or if a look that was answered is not
        complete in the collector.
        """
        flush()
        if self.budget_reached:
            self.current = None
            return
        self._pairs += _pairs(self.current or ())
        self._answered |= self._step.by_arm()
        following = self._until.judge()
        again = [
            (cohort, look)
            for (arm, cohort), look in following.by_arm().items()
            if look <= self._answered.get((arm, cohort), 0)
        ]
        if again:
            raise RolloutFileError(
                f"{again[0][0]}: look {again[0][1]} was answered, and the collector does not "
                "have all its pairs; it was emptied, or has pairs of an earlier run of this name: "
                "give the experiment a new name under `rollout:`"
            )
        self._prepare(following, warmup=self.relaunches)

    def _prepare(self, step: Step, *, warmup: bool) -> None:
        turns = self._open_turns(self._plan.turns(step, warmup=warmup)) if step.looks else []
        most = self._until.budget.pairs
        self.budget_reached = most is not None and self._pairs + _pairs(turns) > most
        self._step = step
        self.current = turns if step.looks and not self.budget_reached else None


def _pairs(turns: Iterable[Turn]) -> int:
    """Return the number of pairs that these turns complete: one for each candidate's answer."""
    return sum(turn.is_end and not turn.warmup and turn.arm != Arm.BASELINE for turn in turns)
