"""Handle one request: authenticate the client, parse the body, choose the arm that answers."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from prometheus_client import generate_latest

from collector.contract import Arm
from engine_adapter.errors import GenerationError, RefusedRequestError
from engine_adapter.recording import GENERATION_PATHS
from engine_adapter.router.client_keys import ClientKeys
from engine_adapter.router.counts import Counts, Exposition
from engine_adapter.router.decision import Control
from engine_adapter.router.engine_arm import EngineArm
from engine_adapter.router.export_queue import ExportQueue
from engine_adapter.router.facts import facts_of
from engine_adapter.router.generation_spans import AttemptContext
from engine_adapter.router.generations import GenerationHandler
from engine_adapter.router.http1.client_answer import ClientAnswer
from engine_adapter.router.http1.client_request import ClientRequest
from engine_adapter.router.http1.headers import RequestHeaders, response_headers
from engine_adapter.router.replies import ok_reply, refusal, upstream_failure
from engine_adapter.router.request_edit import document_of, is_quickly_parsed
from engine_adapter.router.settings import RouterSettings
from engine_adapter.router.trace_context import TraceContext
from engine_adapter.router.transport import EngineRequest

BASE: Final = "/v1"
_PATH: Final = re.compile(r"/v1(?:/[A-Za-z0-9._~:@!$&'()*+,;=%-]+)+")
_UNCLEAR: Final = re.compile(r"/\.{1,2}(?:/|$)|%2e|%2f|%5c|%00", re.IGNORECASE)
"""Paths that two servers could interpret differently."""
_OWN_PATHS: Final = frozenset(("/metrics", "/router/state"))
_METRICS_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"


class Proxy:
    """Answers requests; holds the state that they share."""

    def __init__(
        self, settings: RouterSettings, control: Control, queue: ExportQueue | None, counts: Counts
    ) -> None:
        self._settings = settings
        self._control = control
        self._queue = queue
        self._counts = counts
        self._keys = ClientKeys(settings.client_keys)
        self._headers = RequestHeaders(settings.pass_headers)
        self._arms: Mapping[Arm, EngineArm] = {
            Arm.BASELINE: EngineArm(settings.baseline, settings.breaker),
            Arm.CANDIDATE: EngineArm(settings.candidate, settings.breaker),
        }
        self._generations = GenerationHandler(settings, control, self._arms, queue, counts)
        self._in_flight = 0

    async def close(self) -> None:
        """Cancel the mirrored requests and close the connections to the engines."""
        await self._generations.close()
        for arm in self._arms.values():
            await arm.transport.close()

    def admit(self, request: ClientRequest) -> None:
        """Admit a request before its body is read; raises `RefusedRequestError`."""
        if request.path != "/healthz":
            self._keys.admit(request.headers)
            if request.path not in _OWN_PATHS:
                self._require_passable(request)
        self._in_flight += 1

    def finish(self, answer: ClientAnswer | None) -> None:
        """Note that an admitted request is over."""
        self._in_flight -= 1
        if answer is not None and answer.status is not None and not answer.is_refusal:
            self._counts.responses[str(answer.status)] += 1

    def refuse(self, refused: RefusedRequestError, answer: ClientAnswer) -> None:
        """Answer a request that is not passed on."""
        self._counts.refusals[refused.code] += 1
        answer.is_refusal = True
        answer.whole(*refusal(refused))

    async def answer(self, request: ClientRequest, answer: ClientAnswer) -> None:
        """Answer a request that was admitted."""
        if request.path == "/healthz":
            answer.whole(*ok_reply(b"ok", "text/plain; charset=utf-8"))
        elif request.path == "/metrics":
            text = generate_latest(Exposition(self._counts, self._gauges()))
            answer.whole(*ok_reply(text, _METRICS_TYPE))
        elif request.path == "/router/state":
            answer.whole(*ok_reply(json.dumps(self._state()).encode(), "application/json"))
        else:
            await self._forward(request, answer)

    def _require_passable(self, request: ClientRequest) -> None:
        path = request.path
        if (
            _PATH.fullmatch(path) is None
            or _UNCLEAR.search(path) is not None
            or "#" in request.query
        ):
            raise RefusedRequestError(404, "unknown_url", "no such route; those of /v1 are passed")
        if self._in_flight >= self._settings.limits.in_flight:
            raise RefusedRequestError(
                503, "router_full", "too many requests are in flight", retry_after_s=1
            )

    async def _forward(self, request: ClientRequest, answer: ClientAnswer) -> None:
        path = request.path.removeprefix(BASE)
        is_generation = request.method == "POST" and path in GENERATION_PATHS
        document = self._document(request) if is_generation else None
        outgoing = EngineRequest(
            method=request.method,
            target=request.target.removeprefix(BASE),
            headers=self._headers.select(request.raw_headers),
            body=request.pieces(),
        )
        if document is None:
            await self._pass_through(outgoing, answer)
            return
        facts = facts_of(path, document, request.headers, self._in_flight - 1)
        context = AttemptContext(
            path=path,
            document=document,
            decision=self._control.decide(facts),
            input_characters=facts.input_characters,
            arm=Arm.BASELINE,
            place=TraceContext.continued(request.headers),
        )
        try:
            await self._generations.answer(answer, outgoing, context, self._in_flight)
        except RefusedRequestError as refused:
            self.refuse(refused, answer)

    def _document(self, request: ClientRequest) -> Mapping[str, Any] | None:  # Any: their JSON
        """Return the request's JSON object; `None` if it is not one or is too large to parse."""
        if request.body_bytes <= self._settings.limits.read_bytes:
            body = request.body()
            if is_quickly_parsed(body):
                return document_of(body)
        self._counts.unread_requests += 1
        return None

    async def _pass_through(self, request: EngineRequest, client: ClientAnswer) -> None:
        """Let the baseline answer a request that is outside the rollout; record no span.

        If the engine breaks off, the response is cut too.
        """
        try:
            response = await self._arms[Arm.BASELINE].transport.handle_request(request)
        except GenerationError as exc:
            client.whole(*upstream_failure(exc))
            return
        try:
            length = response.headers.get("Content-Length", "")
            client.begin(
                response.status,
                response_headers(response.headers),
                int(length) if length.isdecimal() else None,
            )
            while data := await response.read():
                client.write(data)
                await client.drained()
            client.end()
        except GenerationError:
            client.cut()
        finally:
            response.close()

    def _state(self) -> Mapping[str, object]:
        """Return the body of `/router/state`; `draftgate drill` reads `last_begun_unix_ns`."""
        return {
            "now_unix_ns": time.time_ns(),
            "control": self._control.state(),
            "arms": {
                arm.value: {
                    "begun": engine.transport.begun,
                    "last_begun_unix_ns": engine.transport.last_begun_unix_ns,
                    "breaker_open": engine.breaker.is_open,
                }
                for arm, engine in self._arms.items()
            },
            "in_flight": self._in_flight,
            "mirrors_in_flight": len(self._generations.mirrors),
            "mirrors": self._counts.mirrors,
            "fallbacks": self._counts.fallbacks,
            "spans_waiting": None if self._queue is None else len(self._queue),
            "spans": self._counts.spans,
        }

    def _gauges(self) -> Mapping[str, float]:
        return dict[str, float](
            in_flight=self._in_flight,
            mirrors_in_flight=len(self._generations.mirrors),
            spans_waiting=len(self._queue) if self._queue is not None else 0,
            candidate_allowed=self._control.candidate_allowed(),
            baseline_breaker_open=self._arms[Arm.BASELINE].breaker.is_open,
            candidate_breaker_open=self._arms[Arm.CANDIDATE].breaker.is_open,
        )
