"""Sentinels: prompts that a run asks again and again, so that state between requests shows.

An engine that keeps nothing but caches gives a greedy prompt the same answer each time, up to
rounding. Each sentinel is asked alone and, in turn, directly after a neighbour: a prompt that
shares its prefix, whose cached computation the engine may then reuse.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from engine_adapter.run.load_shape import Load
from engine_adapter.sessions import Session
from engine_adapter.workload import Prompt

_COMPARED: Final = 1000
"""Prompts of the workload among which sentinels are chosen."""
_CHARACTERS: Final = 2000
"""Characters of a prompt that are compared with others."""
_SHARED: Final = 64
"""Characters that a neighbour must share at least: about one block of a prefix cache."""
_EXTENSION: Final = "\n\nAnswer in one sentence."


class Sentinel(NamedTuple):
    """A prompt that is asked again and again."""

    prompt: Prompt
    neighbour: Prompt | None
    """Shares its prefix: a prompt of the workload, or itself with a further sentence."""


class SentinelVisit(NamedTuple):
    """One request of a sentinel, or two if its neighbour is asked before it."""

    sentinel: Sentinel
    after_neighbour: bool

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts in the order in which they are asked."""
        prompt, neighbour = self.sentinel
        return (neighbour, prompt) if self.after_neighbour and neighbour is not None else (prompt,)


def chosen(sessions: Sequence[Session], load: Load) -> list[Sentinel]:
    """Return the sentinels: of each cohort in turn, the prompts that share most with another."""
    own = load.history == "own"
    prompts = [prompt for session in sessions for prompt in (session[:1] if own else session)]
    ranked = sorted(_relatives(prompts[:_COMPARED]), key=lambda one: -one.shared)
    found, used = list[Sentinel](), set[str]()
    for _ in range(load.sentinels.prompts):
        cohorts = set[str]()
        for one in ranked:
            free = not {one.prompt.id, one.other.id} & used and one.prompt.cohort not in cohorts
            if free and len(found) < load.sentinels.prompts:
                cohorts.add(one.prompt.cohort)
                used |= {one.prompt.id, one.other.id}
                found.append(_sentinel(one))
    return found


class _Relative(NamedTuple):
    prompt: Prompt
    other: Prompt
    """The prompt that shares its longest prefix; itself if it is the only one."""
    shared: int
    """Characters that both begin with."""


def _relatives(prompts: Sequence[Prompt]) -> Iterator[_Relative]:
    """Yield each prompt with its relative; in the order of texts it is one of the next ones."""
    texts = {prompt.id: _text(prompt) for prompt in prompts}
    ordered = sorted(prompts, key=lambda prompt: texts[prompt.id])
    beside = {prompt.id: place for place, prompt in enumerate(ordered)}
    for prompt in prompts:
        place = beside[prompt.id]
        others = [*ordered[max(place - 1, 0) : place], *ordered[place + 1 : place + 2]]
        shared = [_common(texts[prompt.id], texts[o.id]) for o in others]
        most, nearest = max(zip(shared, range(len(others)), strict=True), default=(0, None))
        yield _Relative(prompt, prompt if nearest is None else others[nearest], most)


def _text(prompt: Prompt) -> str:
    return "".join(f"{one.role}\n{one.text}\n" for one in prompt.chat)[:_CHARACTERS]


def _common(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    unlike = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(unlike, min(len(one), len(other)))


def _sentinel(found: _Relative) -> Sentinel:
    enough = found.shared >= _SHARED and found.other is not found.prompt
    neighbour = _alone(found.other) if enough else _extended(found.prompt)
    return Sentinel(_alone(found.prompt), neighbour)


def _alone(prompt: Prompt) -> Prompt:
    """Return the prompt as a greedy request outside any session."""
    update = {"session": None, "turn": None, "think_s": None, "t": None, "temperature": 0.0}
    return prompt.model_copy(update=update)


def _extended(prompt: Prompt) -> Prompt | None:
    *before, last = prompt.chat
    if not isinstance(last.content, str):
        return None
    longer = last.model_copy(update={"content": last.content + _EXTENSION})
    update = {"id": f"{prompt.id}/neighbour", "prompt": None, "messages": (*before, longer)}
    return _alone(prompt).model_copy(update=update)


def asks_before(place: int, sentinels: Sequence[Sentinel], every: int) -> list[SentinelVisit]:
    """Return the sentinels to ask before the visit at this place: all of them before the first one.

    Then one sentinel before each `every`th visit, by turns; each alternates between its neighbour
    before it and none.
    """
    if place == 0:
        return [SentinelVisit(one, after_neighbour=False) for one in sentinels]
    if not sentinels or place % every:
        return []
    times, which = divmod(place // every - 1, len(sentinels))
    return [SentinelVisit(sentinels[which], after_neighbour=times % 2 == 0)]
