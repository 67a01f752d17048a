"""A bounded queue of spans, exported to the collector in the background.

A slow or unreachable collector never delays a user's request: if the queue is full, the newest
span is dropped and counted. Spans that the collector refuses for good are counted as refused.
"""

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Final

import aiohttp
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from engine_adapter.collector_access import CollectorAccess
from engine_adapter.router.counts import Counts

_BATCH: Final = 256
_GATHER_S: Final = 0.25
_TIMEOUT_S: Final = 10.0
_LAST_CHANCE_S: Final = 5.0
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_RETRYABLE: Final = frozenset(
    (
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    )
)


class ExportQueue:
    """Takes encoded spans without waiting; `run` exports them, `close` exports the rest."""

    def __init__(self, collector_url: str, access: CollectorAccess, bound: int, counts: Counts):
        self._url = f"{collector_url.rstrip('/')}/v1/traces"
        self._tls = access.tls()
        self._headers = {**access.headers, "content-type": "application/x-protobuf"}
        self._bound = bound
        self._counts = counts
        self._queue: deque[bytes] = deque()
        self._available = asyncio.Event()
        self._session: aiohttp.ClientSession | None = None

    def __len__(self) -> int:
        """Return the number of queued spans."""
        return len(self._queue)

    def offer(self, span: bytes) -> None:
        """Queue a span; if the queue is full, drop and count it. Never waits."""
        if len(self._queue) >= self._bound:
            self._counts.spans["dropped"] += 1
            return
        self._queue.append(span)
        self._available.set()

    async def run(self) -> None:
        """Export spans until cancelled; back off while the collector fails."""
        wait_s = _GATHER_S
        while True:
            await self._available.wait()
            await asyncio.sleep(wait_s)
            if await self._send_batch():
                wait_s = _GATHER_S
            else:
                wait_s = min(_LONGEST_WAIT_S, max(_FIRST_WAIT_S, 2 * wait_s))
            if not self._queue:
                self._available.clear()

    async def close(self) -> None:
        """Export the remaining spans within `_LAST_CHANCE_S`; drop and count the rest."""
        try:
            async with asyncio.timeout(_LAST_CHANCE_S):
                while self._queue and await self._send_batch():
                    pass
        except TimeoutError:
            pass
        self._counts.spans["dropped"] += len(self._queue)
        self._queue.clear()
        if self._session is not None:
            await self._session.close()

    async def _send_batch(self) -> bool:
        """Export the oldest spans; remove them once they are exported or refused.

        Return `False` if the export must be retried.
        """
        batch = [self._queue[n] for n in range(min(_BATCH, len(self._queue)))]
        if not batch:
            return True
        outcome = await self._post(b"".join(batch), len(batch))
        if outcome is None:
            return False
        for _ in batch:
            self._queue.popleft()
        self._counts.spans.update({name: number for name, number in outcome.items() if number})
        return True

    async def _post(self, body: bytes, number: int) -> dict[str, int] | None:
        """Return the number of spans by outcome; `None` if the export must be retried."""
        try:
            async with self._open().post(self._url, data=body, headers=self._headers) as answer:
                said = await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        if answer.status in _RETRYABLE:
            return None
        if not answer.ok:
            return {"refused": number}
        refused = min(number, _rejected(said))
        return {"exported": number - refused, "refused": refused}

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=1, ssl=self._tls),
                timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def _rejected(body: bytes) -> int:
    try:
        return int(ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans)
    except DecodeError:
        return 0
