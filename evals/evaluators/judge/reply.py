"""Ask a judge for a JSON object; if its reply is unusable, ask once more."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from evals.evaluators.judge.endpoint import Endpoint, JudgeAnswer, Message
from evals.evaluators.judge.prompts import REPAIR

R = TypeVar("R")
Read = Callable[[Mapping[str, Any]], R]  # Any: JSON values


class UnusableReplyError(ValueError):
    """A reply that does not have the form asked for; the message says why."""


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """The value read from a judge's reply, and its cost."""

    reading: Any  # Any: the type that `read` returns
    cost_usd: float | None


def ask(endpoint: Endpoint, prompt: str, read: Read[R], *, sample: int = 0) -> JudgeReply:
    """Ask the judge and read its reply; ask once more, with the problem, if it is unusable.

    Raises `UnusableReplyError` if the second reply is unusable too, and `JudgeError`.
    """
    messages: list[Message] = [{"role": "user", "content": prompt}]
    first = endpoint.complete(messages, sample=sample)
    try:
        return JudgeReply(read(json_object(first.text)), first.cost_usd)
    except UnusableReplyError as exc:
        messages += [
            {"role": "assistant", "content": first.text},
            {"role": "user", "content": REPAIR.format(problem=exc)},
        ]
    second = endpoint.complete(messages, sample=sample)
    return JudgeReply(read(json_object(second.text)), _sum(first, second))


def json_object(text: str) -> Mapping[str, Any]:
    """Return the first JSON object in the text; other text around it is ignored."""
    decoder, problem = json.JSONDecoder(), "no JSON object in it"
    at = text.find("{")
    while at != -1:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as exc:
            problem = str(exc)
        else:
            if isinstance(found, dict):
                return found
        at = text.find("{", at + 1)
    raise UnusableReplyError(problem)


def _sum(*answers: JudgeAnswer) -> float | None:
    costs = [answer.cost_usd for answer in answers]
    return None if any(cost is None for cost in costs) else sum(c for c in costs if c is not None)
