"""The order and the due times of the arms' turns.

The arms are interleaved, because a drift of the machine would otherwise look like a difference
between the arms.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice

from collector.contract import Arm
from engine_adapter.run.load_shape import Load, ThinkTime
from engine_adapter.run.sentinels import Sentinel, SentinelVisit, asks_before
from engine_adapter.run.trace_prompts import shaped
from engine_adapter.run.traces import Arrival, in_sessions
from engine_adapter.sessions import grouped
from engine_adapter.workload import MAX_THINK_S, Prompt


@dataclass(frozen=True, slots=True)
class Turn:
    """One request to one arm."""

    prompt: Prompt
    repeat: int
    arm: str
    """`baseline`, or the candidate's name; a single candidate's is `candidate`."""
    warmup: bool = False
    """A warm-up turn is answered but not recorded."""
    due_s: float | None = None
    """Arrival time since the run began, of a session's first turn; `None` means as soon as a slot
    is free."""
    session: str | None = None
    """The session, one name for each repeat; its turns follow each other."""
    think_s: float | None = None
    """Pause after the session's previous answer; `None`: by the prompt's recorded time, or none."""
    own_history: bool = False
    """Whether the arm's own answers stand in for the recorded ones."""
    is_end: bool = True
    """Whether it is a pair's: with own histories, only a session's last turn is."""
    look: int | None = None
    """The declared look that is the first to judge its pair, from 1."""
    looks: str | None = None
    """The pairs of its cohort that each declared look judges, such as `40 80 120`."""
    attempt: int = 0
    """How many times the session was begun and not finished before."""
    copies: tuple[int, ...] = (0,)
    """Places, among its arm's rollouts, of those that the answer counts in: a baseline's counts for
    each candidate."""
    sentinel: str | None = None
    """The sentinel that it asks; such a turn belongs to no pair, and `repeat` tells it apart."""
    after: str | None = None
    """The sentinel's neighbour, which the arm answers directly before."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The requests of one session, answered by all arms; a lone prompt is a session of one."""

    asked: Sequence[tuple[Prompt, int]]
    """Each prompt with its repeat."""
    due_s: float | None = None

    @property
    def name(self) -> str | None:
        """The session's name; `None` for a lone prompt."""
        prompt, repeat = self.asked[0]
        if prompt.session is None:
            return None
        return f"{prompt.session}#{repeat}" if repeat else prompt.session


def turns(
    prompts: Sequence[Prompt],
    load: Load,
    *,
    seed: int,
    trace: Sequence[Arrival] = (),
    arms: Sequence[str] = tuple(Arm),
    sentinels: Sequence[Sentinel] = (),
) -> Iterator[Turn]:
    """Yield the warm-up turns of all arms, then those of each visit, one arm after the other.

    Sentinels are asked between the visits, if there are enough of these.

    `abba` goes through the orders of `balanced_orders`, in each cohort by itself, so that a linear
    drift cancels; `random` draws each visit's order from `seed`. In an open loop a visit arrives at
    all arms at the same time, so that each arm gets the whole traffic. Sessions are warmed up with
    by their first turns. `arms` begins with the baseline.
    """
    first = [session[0] for session in grouped(prompts)]
    for prompt in islice(cycle(first), load.warmup):
        for arm in arms:
            yield Turn(prompt, 0, arm, warmup=True)
    drawn = random.Random(seed)  # noqa: S311  # an experiment's order, not a secret
    orders = balanced_orders(len(arms))
    seen = Counter[str]()
    planned = list(visits(prompts, load, seed=seed, trace=trace))
    every = load.sentinels.spacing(len(planned))
    for number, visit in enumerate(planned):
        for ask in asks_before(number, sentinels, every) if every else ():
            for place in orders[number % len(orders)]:
                yield from _of_sentinel(ask, number, visit.due_s, place, arms)
        cohort = visit.asked[0][0].cohort
        places = orders[seen[cohort] % len(orders)]
        if load.order == "random":
            places = tuple(drawn.sample(range(len(arms)), len(arms)))
        seen[cohort] += 1
        for place in places:
            yield from _of_arm(visit, place, arms, load, seed)


def balanced_orders(arms: int) -> tuple[tuple[int, ...], ...]:
    """Return orders in which each arm has each place, and follows each other arm, equally often.

    A Williams design (1949), of `arms` orders, or twice as many if `arms` is odd; for two arms it
    is ABBA.
    """
    first = [0, *(place for step in range(1, arms) for place in (step, arms - step))][:arms]
    rows = [tuple((place + shift) % arms for place in first) for shift in range(arms)]
    return tuple(rows + [row[::-1] for row in rows] if arms % 2 else rows)


def _of_arm(visit: Visit, place: int, arms: Sequence[str], load: Load, seed: int) -> Iterator[Turn]:
    """Yield the turns of a visit to the arm at a place in `arms`."""
    own = load.history == "own" and len(visit.asked) > 1
    for number, (prompt, repeat) in enumerate(visit.asked, start=1):
        yield Turn(
            prompt,
            repeat,
            arms[place],
            due_s=visit.due_s,
            session=visit.name,
            think_s=_think_s(prompt, repeat, load.think_s, seed),
            own_history=own,
            is_end=not own or number == len(visit.asked),
            copies=(0,) if place else tuple(range(len(arms) - 1)),
        )


def _of_sentinel(
    ask: SentinelVisit, number: int, due_s: float | None, place: int, arms: Sequence[str]
) -> Iterator[Turn]:
    """Yield the turns of a sentinel, before the visit of this number, to the arm at a place."""
    before: str | None = None
    for prompt in ask.prompts:
        yield Turn(
            prompt.model_copy(update={"id": f"sentinel/{prompt.id}"}),
            number,
            arms[place],
            due_s=due_s,
            session=f"sentinel/{ask.sentinel.prompt.id}/{number}",
            is_end=False,
            copies=(0,) if place else tuple(range(len(arms) - 1)),
            sentinel=prompt.id,
            after=before,
        )
        before = prompt.id


def _think_s(prompt: Prompt, repeat: int, think: ThinkTime | None, seed: int) -> float | None:
    """Return a turn's think time, drawn from the seed and the prompt if it has a distribution."""
    if think is None:
        return prompt.think_s
    if think.exponential is None:
        return think.fixed
    drawn = random.Random(f"{seed}/{prompt.id}/{repeat}")  # noqa: S311  # not a secret
    return min(drawn.expovariate(1 / think.exponential), MAX_THINK_S)


def visits(
    prompts: Sequence[Prompt], load: Load, *, seed: int, trace: Sequence[Arrival] = ()
) -> Iterator[Visit]:
    """Yield each session once per repeat, with its arrival time in an open loop."""
    if load.mode == "trace":
        yield from _of_trace(prompts, load, trace)
        return
    sessions = grouped(prompts)
    asked = (
        [(prompt, repeat) for prompt in session]
        for repeat in range(load.repeats)
        for session in sessions
    )
    if load.is_open:
        for session, due_s in zip(asked, times_s(load, seed), strict=False):
            yield Visit(session, due_s)
    else:
        for session in asked:
            yield Visit(session)


def times_s(load: Load, seed: int) -> Iterator[float]:
    """Yield arrival times without end, in seconds since the run began, at `load.rate` a second.

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


def _of_trace(prompts: Sequence[Prompt], load: Load, trace: Sequence[Arrival]) -> Iterator[Visit]:
    """Yield the sessions of a trace; its requests go through the prompts, again and again."""
    speed = load.speed or 1.0
    for numbers in in_sessions(trace):
        first = trace[numbers[0]].at_s
        asked = []
        for turn, number in enumerate(numbers, start=1):
            arrival = trace[number]
            repeat, place = divmod(number, len(prompts))
            prompt = shaped(prompts[place], arrival, load.lengths or "output")
            if len(numbers) > 1:
                delay_s = arrival.delay_s
                prompt = prompt.model_copy(
                    update={
                        "session": f"trace/{first:.3f}/{numbers[0]}",
                        "turn": turn,
                        "think_s": None if delay_s is None else delay_s / speed,
                        "t": arrival.at_s / speed,
                    }
                )
            asked.append((prompt, repeat))
        yield Visit(asked, first / speed)
