"""Request parameters of the workload that a server refuses, found by trial requests."""

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
"""Parameters that are invalid without another one."""
_POSSIBLE_REFUSALS = frozenset(
    (
        "invalid_request",
        "model_not_found",
        "not_found",
        "server_error",
        "server_error_in_stream",
        "unsupported_parameter",
    )
)
"""Error types that may be a refusal. Server errors are among them: vLLM answers 200 and reports in
the stream a parameter that it does not support with speculation."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Parameters that a server refuses: one alone, or several together."""

    names: tuple[str, ...]
    failure: GenerationError


def shortened(request: Request) -> Request:
    """Return the request limited to an answer of a few tokens."""
    return limited(request, _SHORT)


def limited(request: Request, tokens: int) -> Request:
    """Return the request limited to `tokens` output tokens, whatever limit it has."""

    def short(body: Body) -> Body:
        return {**body, **dict.fromkeys((name for name in _LIMITS if name in body), tokens)}

    return replace(request, max_tokens=tokens, more=short(request.more), own=short(request.own))


async def refusals(engine: Engine, requests: Sequence[Request]) -> tuple[Refusal, ...]:
    """Send one request with each set of parameters, and narrow each refused set down."""
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
        parameters = {**request.more, **request.own}
        kind = (frozenset(parameters), parameters.get("model"), _forms(request))
        if kind not in seen:
            seen.add(kind)
            yield shortened(request)


def _forms(request: Request) -> frozenset[str]:
    """Return the kinds of content parts in the messages, and `tool_calls` if there are any."""
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
    """Return a refusal for each parameter refused alone; if none is, one for all together."""
    parameters = {**request.more, **request.own}
    names = sorted(parameters.keys() - set(_LIMITS))
    alone: list[Refusal] = []
    for name in names if len(names) > 1 else ():
        keys = (name, *_NEVER_ALONE.get(name, ()))
        kept = {key: parameters[key] for key in keys if key in parameters}
        refused = await _failure(engine, replace(request, more={}, own=kept))
        if refused is not None:
            alone.append(Refusal((name,), refused))
    return tuple(alone) or (Refusal(tuple(names), failure),)


async def _failure(engine: Engine, request: Request) -> GenerationError | None:
    """Return a refused request's error; it is sent twice, since a server may fail by chance."""
    error = None
    for _ in range(2):
        error = (await observe(engine, request, concurrency=1, due_s=None)).error
        if error is None or error.error_type not in _POSSIBLE_REFUSALS:
            return None
    return error
