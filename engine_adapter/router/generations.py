"""One generation that a client asked for: by which arm it is answered, mirrored, and recorded."""

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
    Circumstances,
    export_request,
    routed,
)
from engine_adapter.router.http1.client_answer import ClientAnswer
from engine_adapter.router.mirror import Mirrors
from engine_adapter.router.replies import upstream_failure
from engine_adapter.router.settings import RouterSettings
from engine_adapter.router.trace_context import TraceContext
from engine_adapter.router.transport import EngineRequest

_LOGGER: Final = logging.getLogger("draftgate.router")
_BREAKER_OPEN: Final = "breaker_open"


class Generations:
    """Answers the requests that a rollout is about."""

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
        """Cut the mirrored requests, and record what is still to be recorded."""
        await self.mirrors.close()
        self._deferred.close()

    async def answer(
        self, client: ClientAnswer, request: EngineRequest, around: Circumstances, concurrency: int
    ) -> None:
        """Let the arm answer that was decided on, or else the baseline.

        Raises `RefusedRequestError` if the baseline is left alone for a while.
        """
        make = partial(self._attempt, concurrency, request)
        if around.decision.mirrored and around.decision.arm is Arm.BASELINE:
            around = self._mirrored(make, around)
        if around.decision.arm is Arm.CANDIDATE and self._control.candidate_allowed():
            candidate = None
            if self._arms[Arm.CANDIDATE].breaker.allows():
                candidate = make(replace(around, arm=Arm.CANDIDATE))
                if await candidate.answer(client):
                    return
            around = self._fallen_back(around, candidate)
        self._require_baseline()
        baseline = make(around)
        if not await baseline.answer(client):
            client.whole(*upstream_failure(baseline.failure or CLIENT_LEFT))

    def _fallen_back(self, around: Circumstances, tried: Attempt | None) -> Circumstances:
        failure = tried.failure if tried is not None else None
        self._counts.fallbacks[failure.error_type if failure else _BREAKER_OPEN] += 1
        return replace(
            around,
            fallback=True,
            place=around.place.beside(),
            since_s=tried.seen.started_s if tried is not None else None,
        )

    def _mirrored(self, make: "partial[Attempt]", around: Circumstances) -> Circumstances:
        """Send the request to the candidate, too; return what makes the two a pair."""
        if not self._control.candidate_allowed() or not self.mirrors.has_room():
            return around
        if not self._arms[Arm.CANDIDATE].breaker.allows():
            self._counts.mirrors[_BREAKER_OPEN] += 1
            return around
        around = replace(around, pair_id=f"{around.place.trace_id}-{around.place.span_id}")
        mirror = replace(around, arm=Arm.CANDIDATE, place=TraceContext.own(), linked=around.place)
        self.mirrors.start(partial(make, mirror))
        return around

    def _require_baseline(self) -> None:
        if not self._arms[Arm.BASELINE].breaker.allows():
            raise RefusedRequestError(
                503,
                "upstream_unavailable",
                "the model's server failed several times in a row and is left alone for a while",
                retry_after_s=self._settings.breaker.open_s,
            )

    def _attempt(self, concurrency: int, request: EngineRequest, around: Circumstances) -> Attempt:
        return Attempt(
            self._arms[around.arm],
            request,
            around,
            concurrency=concurrency,
            observed_bytes=self._settings.limits.observed_bytes,
            record=self._record,
            deferred=self._deferred,
        )

    def _record(self, attempt: Attempt) -> None:
        """Count an attempt that has ended, and queue its span."""
        around, counts = attempt.around, self._counts
        arm = around.arm.value
        if attempt.failure is not None:
            counts.failures[arm, attempt.failure.error_type] += 1
        if attempt.retries:
            counts.retries[arm] += attempt.retries
        counts.unread += attempt.observer.unread
        if self._queue is None:
            return
        try:
            span = self._span(attempt)
        except Exception as exc:  # no answer depends on its span
            counts.spans["failed"] += 1
            _LOGGER.error("a span could not be made and is lost: %r", exc)  # noqa: TRY400
        else:
            self._queue.offer(span)

    def _span(self, attempt: Attempt) -> bytes:
        around, reader, seen = attempt.around, attempt.observer.reader, attempt.seen
        seen.answer = reader.answer()
        generation = routed(around, attempt.arm.settings, reader.provider, seen, attempt.retries)
        if self._settings.record_content:
            generation = replace(generation, content=content_of(around.document, seen.answer))
        return export_request(generation, around.place, around.linked)
