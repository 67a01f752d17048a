"""Division of a run's turns among declared looks, so that it may end when it is decided.

The sessions of each cohort are put in an order drawn from the seed and cut into as many parts as
there are looks; a prompt and all its repeats, and the turns of a session, belong to one part.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import ceil
from typing import Final, NamedTuple

from collector.contract import Arm
from engine_adapter.errors import RolloutFileError, WorkloadError
from engine_adapter.run import sentinels
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.run.rollout_file import sessions as of_rollout
from engine_adapter.run.schedule import Turn, turns
from engine_adapter.sessions import Session

SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
"""Share of a cohort's sessions that each look judges. Without a change, half of the runs end at six
tenths or before; harm of one cohort needs only its own early looks."""

Looks = Mapping[str, int]
"""The look, from 1, of each cohort that is answered next."""


class Step(NamedTuple):
    """The pairs to answer next."""

    looks: Looks
    """Empty at the end."""
    arms: Sequence[str]
    """The candidates that answer, by name."""

    def by_arm(self) -> dict[tuple[str, str], int]:
        """Return the look of each candidate and cohort."""
        return {(arm, cohort): look for arm in self.arms for cohort, look in self.looks.items()}


class LookPlan:
    """The turns of each cohort's looks.

    If the servers are launched several times, each look has a launch, and an equal share of each
    cohort.
    """

    def __init__(self, rollout: Rollout) -> None:
        """Plan a rollout; raises `AdapterError` if its load or workload has no looks."""
        _require_looks(rollout)
        self._load, self._seed = rollout.load, rollout.sampling.seed
        self.arms = tuple(arm for arm in rollout.routes if arm != Arm.BASELINE)
        self.relaunches = self._load.launches > 1
        self.shares: Sequence[float] = SHARES
        sessions = of_rollout(rollout)
        if self.relaunches:
            self.shares = _of_launches(self._load.launches, len(sessions))
        self._sentinels = sentinels.chosen(sessions, self._load)
        self._places = {session[0].id: place for place, session in enumerate(sessions)}
        self._parts = _parts(sessions, self._seed, self.shares)
        self.sizes: Mapping[str, tuple[int, ...]] = {
            cohort: tuple(accumulate(sum(map(self._pairs, part)) for part in parts))
            for cohort, parts in self._parts.items()
        }

    @property
    def first(self) -> Step:
        """The first look of every cohort."""
        return Step(dict.fromkeys(self._parts, 1), self.arms)

    def turns(self, step: Step, *, warmup: bool = True) -> list[Turn]:
        """Return the turns of these looks, the cohorts mixed, with a warm-up first or without."""
        looks = step.looks
        asked = [one for c, look in sorted(looks.items()) for one in self._parts[c][look - 1]]
        drawn = random.Random(f"{self._seed}/{sorted(looks.items())}")  # noqa: S311  # not a secret
        drawn.shuffle(asked)
        load = self._load if warmup else self._load.model_copy(update={"warmup": 0})
        seed = self._seed + sum(looks.values())
        found = turns(
            [prompt for session in asked for prompt in session],
            load,
            seed=seed,
            arms=(Arm.BASELINE.value, *step.arms),
            sentinels=self._sentinels,
        )
        return [self._declared(turn, step) for turn in self._numbered(found)]

    def pairs(self, looks: Looks) -> int:
        """Return the pairs of these looks."""
        return sum(
            self._pairs(one) for c, look in looks.items() for one in self._parts[c][look - 1]
        )

    def all_turns(self) -> list[Turn]:
        """Return the turns of every look, without a warm-up and sentinels."""
        looks = range(1, len(self.shares) + 1)
        steps = (Step({c: look}, self.arms) for c in self._parts for look in looks)
        every = (turn for step in steps for turn in self.turns(step, warmup=False))
        return [turn for turn in every if turn.sentinel is None]

    def _numbered(self, found: Iterable[Turn]) -> list[Turn]:
        """Return the turns; sentinels get the number of the prompt asked next, of no other look."""
        numbered, number = list[Turn](), 0
        for turn in reversed(list(found)):
            if turn.sentinel is None:
                number = self._places.get(turn.prompt.id, 0) * self._load.repeats + turn.repeat
            numbered.append(turn if turn.sentinel is None else replace(turn, repeat=number))
        return numbered[::-1]

    def _declared(self, turn: Turn, step: Step) -> Turn:
        if turn.arm == Arm.BASELINE:
            turn = replace(turn, copies=tuple(map(self.arms.index, step.arms)))
        if turn.warmup or turn.sentinel is not None:
            return turn
        cohort = turn.prompt.cohort
        sizes = " ".join(map(str, self.sizes[cohort]))
        return replace(turn, look=step.looks[cohort], looks=sizes)

    def _pairs(self, session: Session) -> int:
        ends = 1 if self._load.history == "own" else len(session)
        return ends * self._load.repeats


def _require_looks(rollout: Rollout) -> None:
    load = rollout.load
    if load.mode == "trace":
        raise RolloutFileError(
            "--until-decided: a trace is replayed whole, and looks order the prompts by chance; "
            "run it without --until-decided, or with another `load.mode`"
        )


def _of_launches(launches: int, sessions: int) -> tuple[float, ...]:
    if sessions < launches:
        raise WorkloadError(
            f"load.launches: {launches} launches, and {sessions} prompts or sessions; wanted one "
            "for each launch"
        )
    return tuple((number + 1) / launches for number in range(launches))


def _parts(
    sessions: Sequence[Session], seed: int, shares: Sequence[float]
) -> dict[str, list[list[Session]]]:
    by_cohort = dict[str, list[Session]]()
    for session in sessions:
        cohorts = {prompt.cohort for prompt in session}
        if len(cohorts) > 1:
            raise WorkloadError(
                f"--until-decided: session {session[0].session} has turns of {len(cohorts)} "
                "cohorts, which are judged at looks of their own; wanted one"
            )
        by_cohort.setdefault(session[0].cohort, []).append(session)
    return {
        cohort: _cut(cohort, found, seed, shares) for cohort, found in sorted(by_cohort.items())
    }


def _cut(
    cohort: str, sessions: list[Session], seed: int, shares: Sequence[float]
) -> list[list[Session]]:
    drawn = random.Random(f"{seed}/{cohort}")  # noqa: S311  # an experiment's order, not a secret
    drawn.shuffle(sessions)
    ends = [0, *(ceil(round(share * len(sessions), 6)) for share in shares)]
    return [sessions[begin:end] for begin, end in pairwise(ends)]
