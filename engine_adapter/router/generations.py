"""One generation that a client asked for: by which arm it is answered, mirrored, and recorded."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from collector.contract import Arm
from engine_adapter.errors import GenerationError, RefusedRequestError
from engine_adapter.router.attempt import Attempt
from engine_adapter.router.counts import Counts
from engine_adapter.router.decision import Control
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.export_queue import ExportQueue
from engine_adapter.router.generation_spans import (
    Circumstances,
    export_request,
    generation_of,
    with_content,
)
from engine_adapter.router.http1.client_answer import ClientAnswer
from engine_adapter.router.http1.client_connection import Answering
from engine_adapter.router.mirror import Mirrors
from engine_adapter.router.relay import CLIENT_LEFT, relay
from engine_adapter.router.replies import upstream_failure
from engine_adapter.router.settings import RouterSettings
from engine_adapter.router.trace_context import TraceContext
from engine_adapter.router.upstream import Outgoing, UpstreamClient

_BREAKER_OPEN: Final = "breaker_open"


class Generations:
    """Answers the requests that a rollout is about."""

    def __init__(
        self,
        settings: RouterSettings,
        control: Control,
        arms: Mapping[Arm, UpstreamClient],
        queue: ExportQueue | None,
        counts: Counts,
    ) -> None:
        self._settings = settings
        self._control = control
        self._arms = arms
        self._queue = queue
        self._counts = counts
        self.mirrors = Mirrors(settings.limits.mirrors, counts)
        self.afterwards = DeferredWork()

    def begin(
        self, client: ClientAnswer, outgoing: Outgoing, around: Circumstances, concurrency: int
    ) -> Answering:
        """Ask the arm that was decided on; return what answers by it, or else by the baseline.

        Raises `RefusedRequestError`, as does what is returned.
        """
        make = partial(self._attempt, concurrency, outgoing)
        if around.decision.mirrored and around.decision.arm is Arm.BASELINE:
            around = self._mirrored(make, around)
        if around.decision.arm is Arm.CANDIDATE and self._control.candidate_allowed():
            if self._arms[Arm.CANDIDATE].breaker.allows():
                candidate = make(replace(around, arm=Arm.CANDIDATE))
                candidate.begin()
                return self._by_candidate(candidate, client, make, around)
            around = self._fallen_back(around, None)
        return self._by_baseline(self._baseline(make, around), client)

    async def _by_candidate(
        self,
        candidate: Attempt,
        client: ClientAnswer,
        make: "partial[Attempt]",
        around: Circumstances,
    ) -> None:
        if not await self._answered(candidate, client):
            around = self._fallen_back(around, candidate)
            await self._by_baseline(self._baseline(make, around), client)

    async def _by_baseline(self, attempt: Attempt, client: ClientAnswer) -> None:
        if not await self._answered(attempt, client):
            client.whole(*upstream_failure(attempt.failure or CLIENT_LEFT))

    async def _answered(self, attempt: Attempt, client: ClientAnswer) -> bool:
        """Answer by an attempt that has begun; say whether it could."""
        try:
            await attempt.open()
            is_refused = attempt.around.arm is Arm.CANDIDATE and attempt.failure is not None
            if not is_refused:
                await relay(attempt, client, self.afterwards)
                return True
        except GenerationError:
            pass
        except (
            ConnectionError,
            asyncio.CancelledError,
        ):  # cutting its answer ends an engine's work
            attempt.finish(CLIENT_LEFT)
            raise
        attempt.finish()
        return False

    def _baseline(self, make: "partial[Attempt]", around: Circumstances) -> Attempt:
        self._require_baseline()
        attempt = make(around)
        attempt.begin()
        return attempt

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

    def _attempt(self, concurrency: int, outgoing: Outgoing, around: Circumstances) -> Attempt:
        return Attempt(
            self._arms[around.arm],
            outgoing,
            around,
            concurrency=concurrency,
            observed_bytes=self._settings.limits.observed_bytes,
            record=self._record,
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
        reader = attempt.observer.reader
        answer = reader.answer()
        generation = generation_of(
            around,
            attempt.upstream.settings,
            reader.provider,
            attempt.seen,
            answer,
            attempt.retries,
        )
        if self._settings.record_content:
            generation = with_content(generation, around.document, answer)
        self._queue.offer(export_request(generation, around.place, around.linked))
