"""Answer a client's generation by the chosen arm, mirror it, and record its attempts."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from collector.contract import Arm
from engine_adapter.errors import RefusedRequestError
from engine_adapter.recording import content_of
from engine_adapter.router.attempt import CLIENT_LEFT, Attempt
from engine_adapter.router.counts import Counts
from engine_adapter.router.decision import Control
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.engine_arm import EngineArm
from engine_adapter.router.export_queue import ExportQueue
from engine_adapter.router.generation_spans import (
    AttemptContext,
    export_request,
    generation_of_attempt,
)
from engine_adapter.router.http1.client_answer import ClientAnswer
from engine_adapter.router.mirror import Mirrors
from engine_adapter.router.replies import upstream_failure
from engine_adapter.router.settings import RouterSettings
from engine_adapter.router.trace_context import TraceContext
from engine_adapter.router.transport import EngineRequest

_LOGGER: Final = logging.getLogger("draftgate.router")
_BREAKER_OPEN: Final = "breaker_open"


class GenerationHandler:
    """Answers generation requests, which are subject to the rollout."""

    def __init__(
        self,
        settings: RouterSettings,
        control: Control,
        arms: Mapping[Arm, EngineArm],
        queue: ExportQueue | None,
        counts: Counts,
    ) -> None:
        self._settings = settings
        self._control = control
        self._arms = arms
        self._queue = queue
        self._counts = counts
        self._deferred = DeferredWork()
        self.mirrors = Mirrors(settings.limits.mirrors, counts)

    async def close(self) -> None:
        """Cancel the mirrored requests and record the attempts that are not recorded yet."""
        await self.mirrors.close()
        self._deferred.close()

    async def answer(
        self,
        client: ClientAnswer,
        request: EngineRequest,
        context: AttemptContext,
        concurrency: int,
    ) -> None:
        """Let the chosen arm answer; fall back to the baseline if the candidate fails.

        Raises `RefusedRequestError` if the baseline's circuit breaker is open.
        """
        make = partial(self._attempt, concurrency, request)
        if context.decision.mirrored and context.decision.arm is Arm.BASELINE:
            context = self._with_mirror(make, context)
        if context.decision.arm is Arm.CANDIDATE and self._control.candidate_allowed():
            candidate = None
            if self._arms[Arm.CANDIDATE].breaker.allows():
                candidate = make(replace(context, arm=Arm.CANDIDATE))
                if await candidate.answer(client):
                    return
            context = self._fallback_context(context, candidate)
        self._require_baseline()
        baseline = make(context)
        if not await baseline.answer(client):
            client.whole(*upstream_failure(baseline.failure or CLIENT_LEFT))

    def _fallback_context(self, context: AttemptContext, tried: Attempt | None) -> AttemptContext:
        failure = tried.failure if tried is not None else None
        self._counts.fallbacks[failure.error_type if failure else _BREAKER_OPEN] += 1
        return replace(
            context,
            fallback=True,
            place=context.place.beside(),
            since_s=tried.seen.started_s if tried is not None else None,
        )

    def _with_mirror(self, make: "partial[Attempt]", context: AttemptContext) -> AttemptContext:
        """Mirror the request to the candidate; return the context with the pair's id.

        Return the context unchanged if the request cannot be mirrored now.
        """
        if not self._control.candidate_allowed() or not self.mirrors.has_room():
            return context
        if not self._arms[Arm.CANDIDATE].breaker.allows():
            self._counts.mirrors[_BREAKER_OPEN] += 1
            return context
        context = replace(context, pair_id=f"{context.place.trace_id}-{context.place.span_id}")
        mirror = replace(context, arm=Arm.CANDIDATE, place=TraceContext.own(), linked=context.place)
        self.mirrors.start(partial(make, mirror))
        return context

    def _require_baseline(self) -> None:
        if not self._arms[Arm.BASELINE].breaker.allows():
            raise RefusedRequestError(
                503,
                "upstream_unavailable",
                "the model's server failed several times in a row and is left alone for a while",
                retry_after_s=self._settings.breaker.open_s,
            )

    def _attempt(
        self, concurrency: int, request: EngineRequest, context: AttemptContext
    ) -> Attempt:
        return Attempt(
            self._arms[context.arm],
            request,
            context,
            concurrency=concurrency,
            observed_bytes=self._settings.limits.observed_bytes,
            record=self._record,
            deferred=self._deferred,
        )

    def _record(self, attempt: Attempt) -> None:
        """Count an attempt that has ended and queue its span."""
        context, counts = attempt.context, self._counts
        arm = context.arm.value
        if attempt.failure is not None:
            counts.failures[arm, attempt.failure.error_type] += 1
        if attempt.retries:
            counts.retries[arm] += attempt.retries
        counts.unread += attempt.observer.unread
        if self._queue is None:
            return
        try:
            span = self._span(attempt)
        except Exception as exc:  # a failed span must not fail the answer
            counts.spans["failed"] += 1
            _LOGGER.error("a span could not be made and is lost: %r", exc)  # noqa: TRY400
        else:
            self._queue.offer(span)

    def _span(self, attempt: Attempt) -> bytes:
        context, reader, seen = attempt.context, attempt.observer.reader, attempt.seen
        seen.answer = reader.answer()
        generation = generation_of_attempt(
            context, attempt.arm.settings, reader.provider, seen, attempt.retries
        )
        self._control.counted(context.input_characters, generation.input_tokens)
        if self._settings.record_content:
            generation = replace(generation, content=content_of(context.document, seen.answer))
        return export_request(generation, context.place, context.linked)
