"""Pass an engine's answer on to the client, byte by byte as it arrives."""

import asyncio
import time

from aiohttp import HttpVersion11, web

from engine_adapter.errors import GenerationError
from engine_adapter.router import headers
from engine_adapter.router.afterwards import Afterwards
from engine_adapter.router.attempt import Attempt
from engine_adapter.router.engine_answer import Answer
from engine_adapter.router.engine_connection import Take

CLIENT_LEFT = GenerationError("client_disconnected", "the client went away")
_UNSENT_BYTES = 1 << 16
"""What may wait for a slow client before the engine has to; with as much the transport tells its
protocol that it is full, which `drain` waits for."""


async def relay(
    attempt: Attempt, request: web.BaseRequest, afterwards: Afterwards
) -> web.StreamResponse:
    """Answer the client with what an opened attempt says, and finish the attempt.

    What of that no user waits for is done `afterwards`, where the answer came to its end. Where the
    engine breaks off, so does the answer: the client must not take it for whole. Where the client
    goes away, the engine's connection is cut, which ends its work.
    """
    response = response_to(attempt.answer)
    try:
        if attempt.answer.is_stream:
            await _events(attempt, response, request)
        else:
            await _document(attempt, response, request)
        await response.write_eof()
        attempt.let_go()
        afterwards.add(lambda: attempt.finish(_unended(attempt)))
    except GenerationError as exc:
        attempt.finish(exc)
        if rest := attempt.edit.rest():
            await response.write(rest)
        cut(request)
    except (ConnectionError, asyncio.CancelledError):
        attempt.finish(CLIENT_LEFT)
        raise
    return response


def _unended(attempt: Attempt) -> GenerationError | None:
    """Return the failure of a stream that its engine closed before the answer was whole."""
    observer = attempt.observer
    if not attempt.answer.is_stream or observer.ended or observer.unread:
        return None
    return GenerationError("stream_truncated", "the stream ended before the answer did")


async def _document(
    attempt: Attempt, response: web.StreamResponse, request: web.BaseRequest
) -> None:
    first = attempt.edit.whole(attempt.first) if attempt.is_whole else attempt.first
    if attempt.is_whole:
        response.content_length = len(first)
    await response.prepare(request)
    await response.write(first)
    while not attempt.is_whole and (data := await attempt.read()):
        await response.write(data)


async def _events(attempt: Attempt, response: web.StreamResponse, request: web.BaseRequest) -> None:
    """Send a stream: its head and first bytes by way of aiohttp, what follows at the transport."""
    answer, edit = attempt.answer, attempt.edit
    writer = await response.prepare(request)
    first = edit.feed(attempt.first)
    attempt.observe_first()
    while not first and not answer.is_read:  # the head waits for bytes to go with
        data = await answer.read()
        first = edit.feed(data)
        attempt.observer.feed(data, time.perf_counter())
    if answer.is_read:
        await response.write_eof(first + edit.rest())
        return
    await response.write(first)
    if writer is None or request.transport is None:
        raise ConnectionResetError("the client went away")
    chunked = request.version >= HttpVersion11
    last = await answer.hand_on(_taking(attempt, request.transport, chunked=chunked), writer.drain)
    await response.write_eof(edit.feed(last) + edit.rest())
    attempt.observer.feed(last, time.perf_counter())


def _taking(attempt: Attempt, transport: asyncio.Transport, *, chunked: bool) -> Take:
    """Return what writes pieces of a stream to the client, framed as aiohttp frames them."""
    edit, observe = attempt.edit.feed, attempt.observer.feed
    write, unsent_bytes = transport.write, transport.get_write_buffer_size

    def take(data: bytes, at_s: float) -> bool:
        if transport.is_closing():
            return False
        out = edit(data)
        if out:
            write(b"%x\r\n%b\r\n" % (len(out), out) if chunked else out)
        observe(data, at_s)
        return unsent_bytes() <= _UNSENT_BYTES

    return take


async def pass_through(answer: Answer, request: web.BaseRequest) -> web.StreamResponse:
    """Answer the client with an engine's answer that nobody observes, and let go of it."""
    try:
        response = response_to(answer)
        length = answer.headers.get("Content-Length", "")
        if length.isdecimal():
            response.content_length = int(length)
        await response.prepare(request)
        while data := await answer.read():
            await response.write(data)
        await response.write_eof()
    finally:
        answer.close()
    return response


def response_to(answer: Answer) -> web.StreamResponse:
    """Return a response with the answer's status and headers, its body still to come."""
    return _Response(status=answer.status, headers=headers.of_answer(answer.headers))


class _Response(web.StreamResponse):
    """Sends its head with the first bytes of its body, which are there: one packet for two."""

    _send_headers_immediately = False


def cut(request: web.BaseRequest) -> None:
    """Close the client's connection without ending the answer, so that it is seen to be cut."""
    if request.transport is not None:
        request.transport.close()
