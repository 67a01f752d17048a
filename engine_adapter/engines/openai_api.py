"""The OpenAI chat-completions stream, as every engine over HTTP speaks it.

An engine's own file subclasses `OpenAIStreaming` and says what the API leaves open: extra keys of
the body, where its counts stand, what its probe finds.
"""

import hashlib
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from collector.contract import Speculation
from engine_adapter.engines.base import Chunk, Completion, EngineInfo, Item, Request, Sent
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.routes import HttpRoute
from engine_adapter.transport import HttpClient, JsonEvent, Timeouts

ROUTE = "/chat/completions"
_TEXT_KEYS = ("content", "reasoning_content", "reasoning")


def client_of(route: HttpRoute) -> HttpClient:
    """Return the route's HTTP client; raises `EngineSetupError` where the key is not there."""
    headers = dict(route.headers)
    if route.api_key_env is not None:
        key = os.environ.get(route.api_key_env)
        if not key:
            raise EngineSetupError(
                f"api_key_env: the environment variable {route.api_key_env} is not set; "
                "export the key under that name"
            )
        headers["authorization"] = f"Bearer {key}"
    timeouts = Timeouts(
        first_byte_s=route.first_byte_timeout_s,
        idle_s=route.idle_timeout_s,
        total_s=route.timeout_s,
    )
    return HttpClient(route.url, headers=headers, timeouts=timeouts)


def fingerprint(route: HttpRoute, facts: Mapping[str, object]) -> str:
    """Return the hash of what the route asks for and the engine says of itself."""
    asked = route.model_dump(mode="json", include={"engine", "model", "extra_body"})
    return hashlib.sha256(json.dumps([asked, facts], sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Seen:
    """What one stream said so far."""

    texts: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    response_id: str | None = None
    model: str | None = None
    last: Mapping[str, Any] = field(default_factory=dict)
    """The latest event but `[DONE]`: engines put their counts there."""


class OpenAIStreaming:
    """An engine behind the OpenAI API."""

    def __init__(self, route: HttpRoute, client: HttpClient, info: EngineInfo) -> None:
        self.route = route
        self.client = client
        self._info = info

    @property
    def info(self) -> EngineInfo:
        """What answers here."""
        return self._info

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the answer's chunks and completion; raises `GenerationError`."""
        seen = Seen()
        async with self.client.stream(ROUTE, self.body(request)) as stream:
            if stream.sent_s is not None:
                yield Sent(at_s=stream.sent_s)
            async with aclosing(stream.objects(until_done=self.ends_with_done)) as events:
                async for event in events:
                    chunk = self.take(event, seen)
                    if chunk is not None:
                        yield chunk
        if seen.finish_reason is None:
            raise GenerationError(
                "missing_fields",
                f"{self.client.url}{ROUTE}: the stream ended without a `finish_reason`; a proxy "
                "between may strip fields",
            )
        yield self.completion(seen, request)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    # What an engine's own file says:

    ends_with_done = True
    """Whether a stream without `[DONE]` is a broken one."""

    def body(self, request: Request) -> dict[str, Any]:
        """Return the request's JSON."""
        body: dict[str, Any] = {
            "model": self.route.model,
            "messages": [message.model_dump() for message in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        optional = {"top_p": request.top_p, "top_k": request.top_k, "seed": request.seed}
        body |= {key: value for key, value in optional.items() if value is not None}
        return body | self.route.extra_body

    def take(self, event: JsonEvent, seen: Seen) -> Chunk | None:
        """Note what the event says, and return its chunk where it carries content."""
        body = event.body
        seen.last = body
        seen.response_id = body.get("id") or seen.response_id
        seen.model = body.get("model") or seen.model
        if isinstance(body.get("usage"), dict):
            seen.usage = body["usage"]
        choice = _first_choice(body)
        if choice is None:
            return None
        seen.finish_reason = choice.get("finish_reason") or seen.finish_reason
        delta = choice.get("delta") or {}
        text = "".join(delta.get(key) or "" for key in _TEXT_KEYS)
        if not text and not delta.get("tool_calls"):
            return None
        seen.texts.append(delta.get("content") or "")
        return Chunk(at_s=event.at_s, tokens=self.tokens_of(choice), text=text)

    def tokens_of(self, choice: Mapping[str, Any]) -> int | None:  # noqa: ARG002  # for subclasses
        """Return how many tokens a chunk holds, where the engine says so."""
        return None

    def completion(self, seen: Seen, request: Request) -> Completion:
        """Return what the stream said as a whole."""
        details = seen.usage.get("prompt_tokens_details")
        return Completion(
            text="".join(seen.texts),
            finish_reason=seen.finish_reason or "",
            input_tokens=_count(seen.usage.get("prompt_tokens")),
            output_tokens=_count(seen.usage.get("completion_tokens")),
            cached_input_tokens=_count(details.get("cached_tokens"))
            if isinstance(details, dict)
            else None,
            speculation=self.speculation(seen, request),
            response_id=seen.response_id,
            response_model=seen.model,
        )

    def speculation(self, seen: Seen, request: Request) -> Speculation | None:  # noqa: ARG002
        """Return the request's counts, where the engine tells them."""
        return None


def _first_choice(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return None
    return choices[0]


def _count(value: object) -> int | None:
    """Return a token count; `None` for what is none."""
    return value if isinstance(value, int) and value >= 0 else None
