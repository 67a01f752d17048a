"""Sessions of a workload: the requests of one user, each with the history before it."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

from engine_adapter import workload
from engine_adapter.errors import WorkloadError
from engine_adapter.messages import Message
from engine_adapter.workload import Prompt

Session = tuple[Prompt, ...]
"""The requests of one session in order; a prompt without a session is alone."""


def read(path: Path, *, own_history: bool) -> list[Session]:
    """Return a workload's sessions in order of their first requests.

    Raises `WorkloadError` also for sessions that cannot be replayed with their recorded answers,
    or with each arm's own.
    """
    fault = _own_fault if own_history else _recorded_fault
    found = grouped(workload.read(path))
    for session in found:
        _require_one_order(path, session)
        _require(path, session, fault)
    return [_numbered(session) for session in found]


def grouped(prompts: Iterable[Prompt]) -> list[Session]:
    """Return the prompts by session, in the order of the file or of `turn`."""
    found: dict[tuple[str, str], list[Prompt]] = {}
    for prompt in prompts:
        key = ("prompt", prompt.id) if prompt.session is None else ("session", prompt.session)
        found.setdefault(key, []).append(prompt)
    return [tuple(sorted(one, key=lambda prompt: prompt.turn or 0)) for one in found.values()]


def added(earlier: Prompt, later: Prompt) -> tuple[Message, ...]:
    """Return the messages of the later request after the answer to the earlier one."""
    return later.chat[len(earlier.chat) + 1 :]


def _numbered(session: Session) -> Session:
    if session[0].session is None:
        return session
    return tuple(
        prompt.model_copy(update={"turn": number}) for number, prompt in enumerate(session, 1)
    )


def _require_one_order(path: Path, session: Session) -> None:
    turns = [prompt.turn for prompt in session]
    for earlier, later in pairwise(session):
        name = f"{path}: {later.id}: turn"
        if None in turns and set(turns) != {None}:
            raise WorkloadError(
                f"{name}: session {later.session!r} numbers some of its requests and not others; "
                "number all, or none to take them in the order of the file"
            )
        if earlier.turn is not None and earlier.turn == later.turn:
            raise WorkloadError(f"{name}: {later.turn} is that of {earlier.id} too")


def _require(path: Path, session: Session, fault: Callable[[Prompt, Prompt], str | None]) -> None:
    for earlier, later in pairwise(session):
        if (words := fault(earlier, later)) is not None:
            raise WorkloadError(f"{path}: {later.id}: {words}")


def _recorded_fault(earlier: Prompt, later: Prompt) -> str | None:
    """Return what keeps a request from being asked after the recorded answers."""
    for message in later.chat:
        if message.role == "assistant" and not (
            message.content or message.tool_calls or message.refusal
        ):
            return (
                f"its history lacks the `answer` to {earlier.id} or to an earlier turn; give it, "
                "or set `load: {history: own}`"
            )
    return None


def _own_fault(earlier: Prompt, later: Prompt) -> str | None:
    """Return what keeps a request from being asked after the arm's own answers."""
    told = len(earlier.chat)
    if later.chat[:told] != earlier.chat or [m.role for m in later.chat[told:]][:1] != [
        "assistant"
    ]:
        return (
            f"messages: do not begin with those of {earlier.id} and one answer to them, as "
            "`history: own` needs"
        )
    if any(message.role != "user" for message in added(earlier, later)):
        return (
            f"messages: wanted only a user's after the answer to {earlier.id}: tools' results "
            "answer recorded calls, so that this session needs `history: recorded`"
        )
    if earlier.tools and earlier.tool_choice != "none":
        return (
            f"tools: {earlier.id} before it offers some, and nobody would answer the calls; with "
            "`history: own`, offer tools to the last turn alone"
        )
    return None
