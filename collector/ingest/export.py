"""Handling of an OTLP export, over HTTP and gRPC: decode, write, answer.

Single source of truth for the status of an error. A success is answered only after the commit.
"""

import asyncio
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
from collector.ingest.signals import LOGS, DecodedBody, Signal, StoredBody, decode
from collector.nouns import counted
from collector.otlp import weight
from collector.otlp.body import Encoding
from collector.otlp.light_parts import WHOLE_BYTES, light_parts
from collector.store import Batch, merge

_REASONS_SHOWN = 5
_LARGE_BYTES = 2**20
_WRITTEN_AT_ONCE = 4096
"""Most spans of one body in one transaction, because all other writers wait for it."""
_MAY_NOT_JUDGE = "a score needs an API key with the scope judge"


class Sender(NamedTuple):
    """The sender of a body."""

    judges: bool
    """Whether scores in it are stored."""
    key_id: str | None


class Submitted(NamedTuple):
    """A body whose rows are handed to the writer, which frees them at the least cost."""

    result: StoredBody
    written: Future[None] | None
    """None if there is nothing to write."""
    later: Sequence[Batch] = ()
    """The rest of a large body, to be written in pieces, interleaved with other bodies."""


class Exporter:
    """Stores the bodies of exports and creates the responses."""

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
        # A separate limiter, so that small bodies do not wait for large ones.
        self._decoders_of_large = CapacityLimiter(1)
        self._large = CapacityLimiter(1)
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
        """Store a body with reserved room and return the response.

        Raises `CollectorError` if it cannot be decoded or stored.
        """
        steps = self._steps(signal, body, encoding, room)
        decoded: list[DecodedBody] = []
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
        return self._answer(signal, submitted.result)

    def _submit(
        self,
        signal: Signal,
        steps: Iterator[DecodedBody],
        decoded: list[DecodedBody],
        sender: Sender,
    ) -> Submitted:
        """Submit the decoded parts and the remaining steps to the writer; empties the list."""
        decoded += steps
        batch, result = _together(decoded)
        decoded.clear()
        if batch.scores or batch.of_responses:
            if sender.judges:
                batch = _posted_by(sender, batch)
            else:
                batch, result = _without_scores(signal, batch, result)
        if not result.stored:
            return Submitted(result, None)
        first, *later = _pieces(batch)
        return Submitted(result, self._ingest.submit(first), tuple(later))

    def _steps(
        self, signal: Signal, body: bytes, encoding: Encoding, room: Room
    ) -> Iterator[DecodedBody]:
        """Yield a body's decoded parts; each holds the turn only while it is decoded."""
        with self._ingest.turn.taken():
            light = light_parts(body, encoding, signal.root)
        room.widen(weight.BYTES_PER_UNIT * light.units)
        parts = decode(signal, light, encoding, self._content)
        while True:
            with self._ingest.turn.taken():
                part = next(parts, None)
            if part is None:
                return
            yield part

    @contextmanager
    def counting_refusals(self, signal: Signal) -> Iterator[None]:
        """Count the request as refused if the block raises a `CollectorError`."""
        try:
            yield
        except CollectorError as exc:
            code = Code.Name(status_of(exc).code)
            self._counters.refused(signal.counts(self._counters), code)
            raise

    def _answer(self, signal: Signal, result: StoredBody) -> Message:
        rejected = result.rejected
        self._counters.answered(
            signal.counts(self._counters),
            received=result.stored + result.ignored + len(rejected),
            ignored=result.ignored,
            rejected=rejected,
            flags=result.flags,
        )
        return signal.answer(len(rejected), _reasons(rejected) or result.warning)


def _together(decoded: Sequence[DecodedBody]) -> DecodedBody:
    if len(decoded) == 1:
        return decoded[0]
    result = StoredBody(
        sum(part.result.stored for part in decoded),
        sum(part.result.ignored for part in decoded),
        tuple(chain.from_iterable(part.result.rejected for part in decoded)),
        tuple(chain.from_iterable(part.result.flags for part in decoded)),
    )
    return DecodedBody(merge(part.batch for part in decoded), result)


def _some(steps: Iterator[DecodedBody]) -> list[DecodedBody]:
    """Return a list with the next step, or an empty one."""
    return list(islice(steps, 1))


def _pieces(batch: Batch) -> Iterator[Batch]:
    """Yield a large batch in pieces of at most `_WRITTEN_AT_ONCE` items of each kind."""
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
    """Return the status for an error, with a retry delay if a retry may succeed."""
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
    """Return the batch with the sender's key id in every score."""
    return replace(
        batch,
        scores=tuple(replace(score, key_id=sender.key_id) for score in batch.scores),
        of_responses=tuple(
            one._replace(score=replace(one.score, key_id=sender.key_id))
            for one in batch.of_responses
        ),
    )


def _without_scores(signal: Signal, batch: Batch, result: StoredBody) -> DecodedBody:
    """Return the batch without scores, and reject them: the key lacks the scope judge."""
    count = len(batch.scores) + len(batch.of_responses)
    kept = replace(batch, scores=(), of_responses=())
    if signal is LOGS:
        return DecodedBody(
            kept, StoredBody(0, result.ignored, result.rejected + count * (_MAY_NOT_JUDGE,))
        )
    return DecodedBody(
        kept, result._replace(warning=f"{counted(count, 'score')} not stored: {_MAY_NOT_JUDGE}")
    )


def _reasons(rejected: Sequence[str]) -> str:
    reasons = Counter(rejected).most_common(_REASONS_SHOWN)
    return "; ".join(f"{count} × {reason}" for reason, count in reasons)
