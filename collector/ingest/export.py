"""An OTLP export, the same over HTTP and gRPC: decode, write, answer.

Single source of truth for the status that an error is answered with. Answered means committed.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from anyio import CapacityLimiter, to_thread
from google.protobuf.message import Message
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from collector.content import ContentPolicy
from collector.errors import (
    RETRY_AFTER_S,
    AccessError,
    BodyTooLargeError,
    CollectorError,
    ForbiddenError,
    QueueFullError,
    RateLimitError,
    StoreError,
    message_for_sender,
)
from collector.ingest.admission import Room
from collector.ingest.counters import Counters
from collector.ingest.queue import Ingest
from collector.ingest.signals import LOGS, Decoded, Signal, StoredBody
from collector.otlp import weight
from collector.otlp.body import Encoding
from collector.otlp.body_parts import WHOLE_BYTES
from collector.store import Batch, merge

_REASONS_SHOWN = 5
_LARGE_BYTES = 2**20
_WRITTEN_AT_ONCE = 4096
"""Spans of one body in one transaction, which everybody else waits for."""
_MAY_NOT_JUDGE = "a score needs an API key with the scope judge"


class Sender(NamedTuple):
    """Who sent a body."""

    judges: bool
    """Whether scores in it are stored."""
    key_id: str | None


class Submitted(NamedTuple):
    """A body whose rows are the writer's alone: they are many, and it lets go of them cheapest."""

    told: StoredBody
    written: Future[None] | None
    """None where nothing is to be written."""
    later: Sequence[Batch] = ()
    """The rest of a large body, to be written piece by piece, with those of others between."""


class Exporter:
    """Stores the bodies of exports, and answers them.

    Both methods raise `CollectorError` where a body cannot be read or stored; nothing of it is
    stored then.
    """

    def __init__(
        self,
        ingest: Ingest,
        decoders: CapacityLimiter,
        counters: Counters,
        content: ContentPolicy,
    ) -> None:
        self._content = content
        self._ingest = ingest
        self._decoders = decoders
        # Beside the others: who sends little does not wait for who sends much.
        self._decoders_of_large = CapacityLimiter(1)
        self._large = CapacityLimiter(1)
        self._large_blocking = threading.Lock()
        self._counters = counters

    async def export(
        self,
        signal: Signal,
        body: bytes,
        encoding: Encoding,
        room: Room,
        *,
        sender: Sender,
    ) -> Message:
        """Store a body that holds room and return the response; for the event loop."""
        steps = self._steps(signal, body, encoding, room)
        decoded: list[Decoded] = []
        if len(body) <= WHOLE_BYTES:
            submitted = await to_thread.run_sync(
                self._submit, signal, steps, decoded, sender, limiter=self._decoders
            )
        else:
            is_large = len(body) > _LARGE_BYTES
            limiter = self._decoders_of_large if is_large else self._decoders
            async with self._large if is_large else nullcontext():
                while more := await to_thread.run_sync(_some, steps, limiter=limiter):
                    decoded += more
            submitted = await to_thread.run_sync(
                self._submit, signal, steps, decoded, sender, limiter=limiter
            )
        if submitted.written is not None:
            await asyncio.wrap_future(submitted.written)
        for batch in submitted.later:
            await self._ingest.write(batch)
        return self._answer(signal, submitted.told)

    def export_blocking(
        self, signal: Signal, body: bytes, encoding: Encoding, *, sender: Sender
    ) -> Message:
        """Store a body and return the response; for a thread that may wait."""
        is_large = len(body) > _LARGE_BYTES
        with self._ingest.admission.room(len(body)) as room:
            with self._large_blocking if is_large else nullcontext():
                steps = self._steps(signal, body, encoding, room)
                submitted = self._submit(signal, steps, [], sender)
            if submitted.written is not None:
                submitted.written.result()
            for batch in submitted.later:
                self._ingest.submit(batch).result()
        return self._answer(signal, submitted.told)

    def _submit(
        self,
        signal: Signal,
        steps: Iterator[Decoded],
        decoded: list[Decoded],
        sender: Sender,
    ) -> Submitted:
        """Have what is decoded, and the rest of the steps, written; the list is emptied."""
        decoded += steps
        batch, told = _together(decoded)
        decoded.clear()
        if batch.scores or batch.of_responses:
            if sender.judges:
                batch = _posted_by(sender, batch)
            else:
                batch, told = _without_scores(signal, batch, told)
        if not told.stored:
            return Submitted(told, None)
        first, *later = _pieces(batch)
        return Submitted(told, self._ingest.submit(first), tuple(later))

    def _steps(
        self, signal: Signal, body: bytes, encoding: Encoding, room: Room
    ) -> Iterator[Decoded]:
        """Yield a body's parts; each is a turn's work, and others may come between."""
        room.widen(weight.BYTES_PER_UNIT * weight.units(body, encoding, signal.root))
        parts = signal.decode(body, encoding, self._content)
        while True:
            with self._ingest.turn.taken():
                part = next(parts, None)
            if part is None:
                return
            yield part

    @contextmanager
    def counting_refusals(self, signal: Signal) -> Iterator[None]:
        """Count the request that ends inside with a `CollectorError`."""
        try:
            yield
        except CollectorError as exc:
            code = Code.Name(status_of(exc).code)
            self._counters.refused(signal.counts(self._counters), code)
            raise

    def _answer(self, signal: Signal, told: StoredBody) -> Message:
        rejected = told.rejected
        self._counters.answered(
            signal.counts(self._counters),
            received=told.stored + told.ignored + len(rejected),
            ignored=told.ignored,
            rejected=rejected,
            flags=told.flags,
        )
        return signal.answer(len(rejected), _reasons(rejected) or told.warning)


def _together(decoded: Sequence[Decoded]) -> Decoded:
    if len(decoded) == 1:
        return decoded[0]
    told = StoredBody(
        sum(part.told.stored for part in decoded),
        sum(part.told.ignored for part in decoded),
        tuple(chain.from_iterable(part.told.rejected for part in decoded)),
        tuple(chain.from_iterable(part.told.flags for part in decoded)),
    )
    return Decoded(merge(part.batch for part in decoded), told)


def _some(steps: Iterator[Decoded]) -> list[Decoded]:
    """Return the next step, if there is one."""
    return list(islice(steps, 1))


def _pieces(batch: Batch) -> Iterator[Batch]:
    """Yield a large batch in pieces, scores with the first spans that can be judged by them."""
    most = max(map(len, (batch.spans, batch.scores, batch.of_responses, batch.samples)))
    for at in range(0, most, _WRITTEN_AT_ONCE):
        piece = slice(at, at + _WRITTEN_AT_ONCE)
        yield Batch(
            spans=batch.spans[piece],
            scores=batch.scores[piece],
            of_responses=batch.of_responses[piece],
            samples=batch.samples[piece],
        )


def status_of(error: CollectorError) -> Status:
    """Return the status that an error is answered with; it says when to come again, if at all."""
    if isinstance(error, RateLimitError):
        return _later(Code.RESOURCE_EXHAUSTED, error, error.retry_after_s)
    if isinstance(error, QueueFullError | StoreError):
        return _later(Code.UNAVAILABLE, error, RETRY_AFTER_S)
    if isinstance(error, AccessError):
        known = isinstance(error, ForbiddenError)
        code = Code.PERMISSION_DENIED if known else Code.UNAUTHENTICATED
        return Status(code=code, message=str(error))
    too_large = isinstance(error, BodyTooLargeError)
    code = Code.RESOURCE_EXHAUSTED if too_large else Code.INVALID_ARGUMENT
    return Status(code=code, message=str(error))


def _later(code: int, error: CollectorError, after_s: int) -> Status:
    status = Status(code=code, message=message_for_sender(error))
    retry = RetryInfo()
    retry.retry_delay.seconds = after_s
    status.details.add().Pack(retry)
    return status


def _posted_by(sender: Sender, batch: Batch) -> Batch:
    """Note in every score which key posted it."""
    return replace(
        batch,
        scores=tuple(replace(score, key_id=sender.key_id) for score in batch.scores),
        of_responses=tuple(
            one._replace(score=replace(one.score, key_id=sender.key_id))
            for one in batch.of_responses
        ),
    )


def _without_scores(signal: Signal, batch: Batch, told: StoredBody) -> Decoded:
    """Leave the scores out that a key without the scope judge may not post."""
    count = len(batch.scores) + len(batch.of_responses)
    kept = replace(batch, scores=(), of_responses=())
    if signal is LOGS:
        return Decoded(kept, StoredBody(0, told.ignored, told.rejected + count * (_MAY_NOT_JUDGE,)))
    return Decoded(kept, told._replace(warning=f"{count} scores are not stored: {_MAY_NOT_JUDGE}"))


def _reasons(rejected: Sequence[str]) -> str:
    reasons = Counter(rejected).most_common(_REASONS_SHOWN)
    return "; ".join(f"{count} × {reason}" for reason, count in reasons)
