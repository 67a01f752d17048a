"""What a server refuses of what the workload asks for, found out by asking it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine_adapter.engines import Engine, Request
from engine_adapter.engines.observation import observe
from engine_adapter.errors import GenerationError

Body = Mapping[str, Any]  # Any: JSON values

_LIMITS = ("max_tokens", "max_completion_tokens")
_SHORT = 4
_NEVER_ALONE = {
    "tool_choice": ("tools",),
    "parallel_tool_calls": ("tools",),
    "top_logprobs": ("logprobs",),
}
"""Parameters that mean nothing without another one."""
_MENDED_BY_ASKING_OTHERWISE = frozenset(
    (
        "invalid_request",
        "model_not_found",
        "not_found",
        "server_error",
        "server_error_in_stream",
        "unsupported_parameter",
    )
)
"""Failures that may be a refusal: vLLM answers 200, and says in the stream what it does not take
where it speculates."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Parameters that a server does not take, together or each by itself."""

    names: tuple[str, ...]
    failure: GenerationError


def shortened(request: Request) -> Request:
    """Return the request with an answer of a few tokens."""
    return limited(request, _SHORT)


def limited(request: Request, tokens: int) -> Request:
    """Return the request with an answer of so many tokens at most, whatever it asks for."""

    def short(body: Body) -> Body:
        return {**body, **dict.fromkeys((name for name in _LIMITS if name in body), tokens)}

    return replace(request, max_tokens=tokens, more=short(request.more), own=short(request.own))


async def refusals(engine: Engine, requests: Sequence[Request]) -> tuple[Refusal, ...]:
    """Ask one request of each set of parameters; of a refused set, find which ones it is."""
    found: dict[tuple[str, ...], Refusal] = {}
    for request in _one_of_each_kind(requests):
        failure = await _failure(engine, request)
        if failure is not None:
            for refusal in await _narrowed(engine, request, failure):
                found.setdefault(refusal.names, refusal)
    return tuple(found.values())


def _one_of_each_kind(requests: Sequence[Request]) -> Iterator[Request]:
    seen = set()
    for request in requests:
        asked = {**request.more, **request.own}
        kind = (frozenset(asked), asked.get("model"), _forms(request))
        if kind not in seen:
            seen.add(kind)
            yield shortened(request)


def _forms(request: Request) -> frozenset[str]:
    """Return what its messages hold besides text."""
    kinds = {
        str(part.get("type"))
        for message in request.messages
        if isinstance(message.content, tuple)
        for part in message.content
    }
    calls = {"tool_calls" for message in request.messages if message.tool_calls}
    return frozenset(kinds | calls)


async def _narrowed(
    engine: Engine, request: Request, failure: GenerationError
) -> tuple[Refusal, ...]:
    """Return the parameters that are refused each by itself, else all of them together."""
    asked = {**request.more, **request.own}
    names = sorted(asked.keys() - set(_LIMITS))
    alone: list[Refusal] = []
    for name in names if len(names) > 1 else ():
        kept = {key: asked[key] for key in (name, *_NEVER_ALONE.get(name, ())) if key in asked}
        refused = await _failure(engine, replace(request, more={}, own=kept))
        if refused is not None:
            alone.append(Refusal((name,), refused))
    return tuple(alone) or (Refusal(tuple(names), failure),)


async def _failure(engine: Engine, request: Request) -> GenerationError | None:
    """Return the refusal of a request; it is asked twice, for a server may fail by chance."""
    error = None
    for _ in range(2):
        error = (await observe(engine, request, concurrency=1, due_s=None)).error
        if error is None or error.error_type not in _MENDED_BY_ASKING_OTHERWISE:
            return None
    return error
