"""The course of one session of an arm: what each turn asks, and when."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from collector.contract import Generation, Span
from collector.contract import attributes as a
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.messages import AssistantCall, Function, Message
from engine_adapter.run.journal import root_of
from engine_adapter.run.schedule import Turn
from engine_adapter.sessions import added


def in_sessions(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Yield the turns of each session of an arm; a turn without a session is alone."""

    def key(turn: Turn) -> object:
        return object() if turn.session is None else (turn.session, turn.arm)

    for _, group in groupby(turns, key=key):
        yield list(group)


def due_s(first: Turn, turn: Turn, *, started_s: float, ended_s: float) -> float:
    """Return when a later turn is sent, by the clock of `started_s` and `ended_s`.

    It never precedes the end of the previous answer.
    """
    if turn.think_s is not None:
        return ended_s + turn.think_s
    if turn.prompt.t is None or first.prompt.t is None:
        return ended_s
    return max(ended_s, started_s + turn.prompt.t - first.prompt.t)


class OwnHistory:
    """The messages of a session whose history is the arm's own answers."""

    def __init__(self) -> None:
        self._planned: Turn | None = None
        self._told: tuple[Message, ...] = ()

    def asked(self, turn: Turn) -> Turn:
        """Return the turn with the history so far in place of the recorded one."""
        if self._planned is not None:
            self._told += added(self._planned.prompt, turn.prompt)
        else:
            self._told = turn.prompt.chat
        self._planned = turn
        return self._with_history(turn)

    def heard(self, observed: ObservedAnswer) -> None:
        """Add the answer to the latest turn."""
        self._told += (_message(observed),)

    def broken_off(self, end: Turn) -> Turn:
        """Return the session's end with the messages of the turn that failed before it."""
        return self._with_history(end)

    def _with_history(self, turn: Turn) -> Turn:
        prompt = turn.prompt.model_copy(update={"messages": self._told, "prompt": None})
        return replace(turn, prompt=prompt)


def _message(observed: ObservedAnswer) -> Message:
    """Return an answer as a message of the history, without its reasoning."""
    answer = observed.answer
    if answer is None:
        return Message(role="assistant", content="")
    calls = tuple(
        AssistantCall(
            id=call.id or f"call_{place}",
            type="function",
            function=Function(name=call.name, arguments=call.arguments),
        )
        for place, call in enumerate(answer.tool_calls)
    )
    given = {"role": "assistant", "content": answer.text}
    return Message.model_validate(given | ({"tool_calls": calls} if calls else {}))


def root_span(turns: list[Generation]) -> Span:
    """Return the span above the turns of a session, over their time."""
    first = turns[0]
    attributes = {
        a.GEN_AI_CONVERSATION_ID: first.conversation_id,
        a.DRAFTGATE_ROLLOUT: first.rollout,
        a.DRAFTGATE_ARM: None if first.arm is None else first.arm.value,
        a.DRAFTGATE_COHORT: first.cohort,
    }
    return Span(
        trace_id=first.trace_id,
        span_id=root_of(first.trace_id),
        name=f"session {first.conversation_id}",
        start_unix_ns=min(turn.start_unix_ns for turn in turns),
        end_unix_ns=max(turn.end_unix_ns for turn in turns),
        attributes={name: value for name, value in attributes.items() if value is not None},
        resource={a.SERVICE_NAME: first.service_name},
    )
