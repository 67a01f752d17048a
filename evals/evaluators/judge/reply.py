"""A judge's reply as a JSON object, repaired where it nearly is one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from evals.evaluators.judge.endpoint import Answer, Endpoint, Message
from evals.evaluators.judge.prompts import REPAIR

R = TypeVar("R")
Read = Callable[[Mapping[str, Any]], R]  # Any: JSON values


class UnusableReplyError(ValueError):
    """A reply that is not what was asked for; says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was read out of a judge's reply, and what it cost."""

    reading: Any  # Any: of the reader's type
    cost_usd: float | None


def ask(endpoint: Endpoint, prompt: str, read: Read[R], *, sample: int = 0) -> Judgement:
    """Ask, read, and where the reply is unusable ask once more with what was wrong.

    Raises `UnusableReplyError` after the second reply, and `JudgeError`.
    """
    messages: list[Message] = [{"role": "user", "content": prompt}]
    first = endpoint.ask(messages, sample=sample)
    try:
        return Judgement(read(json_object(first.text)), first.cost_usd)
    except UnusableReplyError as exc:
        messages += [
            {"role": "assistant", "content": first.text},
            {"role": "user", "content": REPAIR.format(problem=exc)},
        ]
    second = endpoint.ask(messages, sample=sample)
    return Judgement(read(json_object(second.text)), _sum(first, second))


def json_object(text: str) -> Mapping[str, Any]:
    """Return the first JSON object in the text, whatever stands around it."""
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


def _sum(*answers: Answer) -> float | None:
    costs = [answer.cost_usd for answer in answers]
    return None if any(cost is None for cost in costs) else sum(c for c in costs if c is not None)
