"""What happens to one request at the door: who sends it, what it is, and who is to answer it."""

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from collector.contract import Arm
from engine_adapter.errors import GenerationError, RefusedRequestError
from engine_adapter.router.asking import document_of
from engine_adapter.router.client_keys import ClientKeys
from engine_adapter.router.counts import Counts, Gauges, exposition
from engine_adapter.router.decision import Control
from engine_adapter.router.export_queue import ExportQueue
from engine_adapter.router.facts import facts_of
from engine_adapter.router.generation_spans import GENERATION_PATHS, Circumstances
from engine_adapter.router.generations import Generations
from engine_adapter.router.headers import RequestHeaders
from engine_adapter.router.relay import cut, pass_through
from engine_adapter.router.replies import refusal, upstream_failure
from engine_adapter.router.settings import RouterSettings
from engine_adapter.router.trace_context import TraceContext
from engine_adapter.router.upstream import Outgoing, UpstreamClient

BASE: Final = "/v1"
_PATH: Final = re.compile(r"/v1(?:/[A-Za-z0-9._~:@!$&'()*+,;=%-]+)+")
_UNCLEAR: Final = re.compile(r"/\.{1,2}(?:/|$)|%2e|%2f|%5c|%00", re.IGNORECASE)
"""Paths that two servers could read differently."""
_BODY_S: Final = 60.0
"""How long a client may take to send its request's body."""


class Proxy:
    """Answers requests; holds what they share."""

    def __init__(
        self, settings: RouterSettings, control: Control, queue: ExportQueue | None, counts: Counts
    ) -> None:
        self._settings = settings
        self._control = control
        self._queue = queue
        self._counts = counts
        self._keys = ClientKeys(settings.client_keys)
        self._headers = RequestHeaders(settings.pass_headers)
        self._arms: Mapping[Arm, UpstreamClient] = {
            Arm.BASELINE: UpstreamClient(Arm.BASELINE, settings.baseline, settings.breaker),
            Arm.CANDIDATE: UpstreamClient(Arm.CANDIDATE, settings.candidate, settings.breaker),
        }
        self._generations = Generations(settings, control, self._arms, queue, counts)
        self._in_flight = 0
        self._bodies: set[asyncio.Timeout] = set()
        self._stopping = False

    def stop_taking(self) -> None:
        """Refuse the requests that are not whole yet: a server that stops reads no more of them."""
        self._stopping = True
        now_s = asyncio.get_running_loop().time()
        for reading in self._bodies:
            reading.reschedule(now_s)

    async def close(self) -> None:
        """Cut the mirrored requests and close the connections."""
        await self._generations.mirrors.close()
        self._generations.afterwards.close()
        for upstream in self._arms.values():
            await upstream.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        self._in_flight += 1
        try:
            response = await self._answer(request)
        except RefusedRequestError as exc:
            self._counts.refusals[exc.code] += 1
            return refusal(exc)
        finally:
            self._in_flight -= 1
        self._counts.responses[str(response.status)] += 1
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/healthz":
            return web.Response(text="ok")
        self._keys.admit(request.headers)
        if request.path == "/metrics":
            return _metrics(self._counts, self._gauges())
        if request.path == "/router/state":
            return web.json_response(self._state())
        outgoing = await self._outgoing(request)
        path = request.rel_url.raw_path.removeprefix(BASE)
        if request.method == "POST" and path in GENERATION_PATHS:
            document = document_of(outgoing.body)
            if document is not None:
                facts = facts_of(path, document, request.headers, self._in_flight - 1)
                decision = self._control.decide(facts)
                around = Circumstances(
                    path=path,
                    document=document,
                    decision=decision,
                    arm=Arm.BASELINE,
                    place=TraceContext.continued(request.headers),
                )
                return await self._generations.answer(request, outgoing, around, self._in_flight)
        return await self._other(request, outgoing)

    async def _outgoing(self, request: web.BaseRequest) -> Outgoing:
        """Read the request whole; raises `RefusedRequestError`."""
        raw_path = request.rel_url.raw_path
        if _PATH.fullmatch(raw_path) is None or _UNCLEAR.search(raw_path) is not None:
            raise RefusedRequestError(404, "unknown_url", "no such route; those of /v1 are passed")
        if self._in_flight > self._settings.limits.in_flight:
            raise RefusedRequestError(
                503, "router_full", "too many requests are in flight", retry_after_s=1
            )
        query = request.rel_url.raw_query_string
        return Outgoing(
            method=request.method,
            target=raw_path.removeprefix(BASE) + (f"?{query}" if query else ""),
            headers=self._headers.passed(request.raw_headers),
            body=await self._body(request),
        )

    async def _body(self, request: web.BaseRequest) -> bytes:
        if request.content.is_eof() and not self._stopping:  # it came with its head
            return await self._read(request)
        reading = asyncio.timeout(0 if self._stopping else _BODY_S)
        self._bodies.add(reading)
        try:
            async with reading:
                return await self._read(request)
        except TimeoutError:
            if self._stopping:
                raise RefusedRequestError(
                    503, "router_stopping", "the router is stopping", retry_after_s=1
                ) from None
            raise RefusedRequestError(
                408, "request_timeout", f"the request's body did not come within {_BODY_S:g} s"
            ) from None
        finally:
            self._bodies.discard(reading)

    async def _read(self, request: web.BaseRequest) -> bytes:
        try:
            return await request.read()
        except web.HTTPRequestEntityTooLarge:
            most = self._settings.limits.body_bytes
            raise RefusedRequestError(
                413, "request_too_large", f"the request's body has more than {most} bytes"
            ) from None

    async def _other(self, request: web.BaseRequest, outgoing: Outgoing) -> web.StreamResponse:
        """Pass a request that no rollout is about to the baseline."""
        try:
            answer = await self._arms[Arm.BASELINE].send(outgoing)
        except GenerationError as exc:
            return upstream_failure(exc)
        try:
            return await pass_through(answer, request)
        except GenerationError:
            cut(request)
            raise

    def _state(self) -> Mapping[str, object]:
        """Return what is so now; `draftgate drill` reads when the candidate was last asked."""
        return {
            "now_unix_ns": time.time_ns(),
            "control": self._control.state(),
            "arms": {
                arm.value: {
                    "begun": upstream.begun,
                    "last_begun_unix_ns": upstream.last_begun_unix_ns,
                    "breaker_open": upstream.breaker.is_open,
                }
                for arm, upstream in self._arms.items()
            },
            "in_flight": self._in_flight,
            "mirrors_in_flight": len(self._generations.mirrors),
            "mirrors": self._counts.mirrors,
            "fallbacks": self._counts.fallbacks,
            "spans_waiting": None if self._queue is None else len(self._queue),
            "spans": self._counts.spans,
        }

    def _gauges(self) -> Gauges:
        return Gauges(
            in_flight=self._in_flight,
            mirrors_in_flight=len(self._generations.mirrors),
            spans_waiting=len(self._queue) if self._queue is not None else 0,
            candidate_allowed=self._control.candidate_allowed(),
            baseline_breaker_open=self._arms[Arm.BASELINE].breaker.is_open,
            candidate_breaker_open=self._arms[Arm.CANDIDATE].breaker.is_open,
        )


def _metrics(counts: Counts, gauges: Gauges) -> web.Response:
    return web.Response(
        body=exposition(counts, gauges),
        headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"},
    )
