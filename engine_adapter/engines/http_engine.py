"""The base of all engines over HTTP (OpenAI API); subclasses read each engine's own fields.

If an answer has no speculation counts, they are taken from scrapes of `/metrics` before and after
it, provided that no other request ran; otherwise they stay absent.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar, Self

from collector.contract import CountSource
from engine_adapter.engines import sampling
from engine_adapter.engines.answer import (
    Answer,
    AnswerReader,
    OutputPart,
    require_whole,
)
from engine_adapter.engines.base import Chunk, EngineInfo, Item, Probe, Request, Sent
from engine_adapter.engines.chunk_shape import OrdinaryChunks
from engine_adapter.engines.introduction import (
    QUESTION,
    as_listed,
    check_model,
    fingerprint,
    is_transient,
)
from engine_adapter.engines.json_fields import JsonObject
from engine_adapter.engines.scrape import Scrape, SpeculationCounters, request_counts
from engine_adapter.engines.self_description import (
    MODELS,
    SelfDescription,
    documents_of,
    metrics_of,
    server_root,
)
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.routes import HttpRoute
from engine_adapter.transport import EventStream, HttpClient, JsonEvent, RecognizedEvents, Timeouts

ROUTE = "/chat/completions"
_SCRAPES = 6
_SCRAPE_PAUSE_S = 0.05


class HttpEngine:
    """One route over HTTP; subclasses set the class attributes and override `interpret`."""

    reader: ClassVar[type[AnswerReader]] = AnswerReader
    counters: ClassVar[SpeculationCounters | None] = None
    metrics_route: ClassVar[str | None] = "/metrics"
    own_routes: ClassVar[tuple[str, ...]] = ()
    """Routes at the server's root that describe it."""
    questions: ClassVar[int] = 2
    """Number of short requests before a run, to see which fields this server sends."""
    ends_with_done: ClassVar[bool] = True

    def __init__(self, route: HttpRoute, client: HttpClient) -> None:
        self.route = route
        self.client = client
        self._probe = Probe()
        self.info = EngineInfo(
            provider=self.reader.provider, model=route.model, version=None, fingerprint=""
        )
        self._in_flight = 0
        self._overlapped = 0
        self._before: Scrape | None = None
        self._scrapes = False

    @classmethod
    async def open(cls, route: HttpRoute) -> Self:
        """Return the engine after probing it; raises `EngineSetupError` if it is unusable."""
        client = _client_of(route)
        engine = cls(route, client)
        try:
            await engine._read_description()
        except BaseException:
            await client.aclose()
            raise
        return engine

    async def probe(self) -> Probe:
        """Return what the engine reported when the route was opened."""
        return self._probe

    async def close(self) -> None:
        """Close the connections."""
        await self.client.aclose()

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Interpret the engine's self-description."""
        return Probe(metrics_url=said.metrics_url, prefix_cache=said.reuses_prefixes)

    def request_body(self, request: Request) -> dict[str, Any]:  # Any: JSON values
        """Return the request's body."""
        return body_of(self.route, self.reader, request)

    def sampler(self, body: JsonObject) -> str | None:
        """Return the steps that sample a body's answer, as far as its parameters name them."""
        return sampling.written(body)

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield `Sent`, the chunks, and the `Answer`; raises `GenerationError`."""
        reader, body = self.reader(self._probe.setup), self.request_body(request)
        self._in_flight += 1
        self._overlapped += self._in_flight > 1
        overlapped = self._overlapped
        try:
            async with aclosing(self._streamed(request, body, reader)) as items:
                async for item in items:
                    yield item
            answer = replace(reader.answer(), sampler=self.sampler(body))
            require_whole(answer, self.client.url + ROUTE)
            alone = self._in_flight == 1 and overlapped == self._overlapped
            yield await self._with_scraped_counts(answer, alone=alone)
        except GenerationError:
            yield reader.answer()
            raise
        finally:
            self._in_flight -= 1

    async def _streamed(
        self, request: Request, body: JsonObject, reader: AnswerReader
    ) -> AsyncGenerator[Item, None]:
        async with self.client.stream(ROUTE, body, headers=_trace_headers(request)) as stream:
            reader.take_headers(stream.headers)
            if stream.sent_s is not None:
                yield Sent(at_s=stream.sent_s)
            ordinary = OrdinaryChunks()
            objects = stream.objects(
                until_done=self.ends_with_done, recognise=ordinary.words_of_all
            )
            async with aclosing(objects) as events:
                async for event in events:
                    if isinstance(event, RecognizedEvents):
                        for words in event.words:
                            reader.add(words)
                            yield _chunk(event, None, stream)
                        continue
                    piece = reader.take(event.body)
                    ordinary.learn(event.text, piece)
                    if piece is not None:
                        yield _chunk(event, piece, stream)

    async def _with_scraped_counts(self, answer: Answer, *, alone: bool) -> Answer:
        """Add counts from `/metrics` to an answer without counts, if no other request ran."""
        if not self._scrapes or _is_counted(answer):
            return answer
        before, self._before = self._before, None
        if not alone or self.counters is None:
            return answer
        for _ in range(_SCRAPES):  # engines count a request a moment after its last chunk
            after = await self._scrape()
            self._before = after
            if after is None or before is None:
                return answer
            counts = request_counts(before, after, self.counters, answer.output_tokens)
            if counts is not None and any(count is not None for count in counts):
                scraped = replace(
                    answer.speculation or self._probe.setup.configured,
                    source=CountSource.SCRAPE.value,
                    **counts._asdict(),
                )
                return replace(answer, speculation=scraped)
            await asyncio.sleep(_SCRAPE_PAUSE_S)
        return answer

    async def _scrape(self) -> Scrape | None:
        url = self._probe.metrics_url
        return await metrics_of(self.client, url) if url is not None else None

    async def _read_description(self) -> None:
        try:
            said = await self._self_description()
        except GenerationError as exc:
            raise EngineSetupError(str(exc)) from exc
        self._probe = as_listed(self.interpret(said), said.of(MODELS), self.route.model)
        self.info = replace(
            self.info,
            version=self._probe.version,
            fingerprint=fingerprint(self.route, self._probe),
        )
        counted = said.again is not None and _is_counted(said.again)
        self._before = said.metrics
        self._scrapes = (
            said.metrics is not None and not counted and self._probe.speculates is not False
        )

    async def _self_description(self) -> SelfDescription:
        models = await documents_of(self.client, (MODELS,))
        check_model(models.get(MODELS), self.route.model, self.client.url)
        answers = [await self._answer_question() for _ in range(self.questions)]
        url = self._metrics_url()
        metrics = await metrics_of(self.client, url) if url is not None else None
        return SelfDescription(
            documents=models | await documents_of(self.client, self.own_routes),
            metrics=metrics,
            metrics_url=url if metrics is not None else None,
            answer=answers[0] if answers else None,
            again=answers[-1] if answers else None,
        )

    def _metrics_url(self) -> str | None:
        if self.route.metrics_url is not None or self.metrics_route is None:
            return self.route.metrics_url
        return server_root(self.client.url) + self.metrics_route

    async def _answer_question(self) -> Answer | None:
        """Return the answer to a short request; `None` if it failed in a way that may pass."""
        reader, body = self.reader(), self.request_body(QUESTION)
        try:
            async with aclosing(self._streamed(QUESTION, body, reader)) as items:
                async for _ in items:
                    pass
        except GenerationError as exc:
            if is_transient(exc):
                return None
            raise
        return reader.answer()


def _client_of(route: HttpRoute) -> HttpClient:
    """Return the route's HTTP client; raises `EngineSetupError` if its key's variable is unset."""
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


def _chunk(
    event: RecognizedEvents | JsonEvent, piece: OutputPart | None, stream: EventStream
) -> Chunk:
    """Return the stamped chunk of a piece; `piece` is `None` for recognised words."""
    if piece is None:
        return Chunk(at_s=event.at_s, tokens=None, late_s=stream.late_s)
    return Chunk(
        at_s=event.at_s, tokens=piece.tokens, is_answer=piece.is_answer, late_s=stream.late_s
    )


def body_of(route: HttpRoute, reader: type[AnswerReader], request: Request) -> dict[str, Any]:
    """Return the request body for a route, with the reader's and the route's fields."""
    return request.body(route.model, reader.request_fields(stream=True) | route.extra_body)


def _trace_headers(request: Request) -> dict[str, str]:
    """Return headers that make the engine's span a child of the generation's and name its logs.

    `traceparent` as in W3C Trace Context; vLLM derives the response's id from X-Request-Id.
    """
    if request.trace_id is None or request.span_id is None:
        return {}
    return {
        "traceparent": f"00-{request.trace_id}-{request.span_id}-01",
        "x-request-id": request.trace_id,
    }


def _is_counted(answer: Answer) -> bool:
    said = answer.speculation
    return said is not None and said.accepted_tokens is not None
