"""Pass an engine's answer on to the client, byte by byte as it arrives."""

import asyncio
import time

from aiohttp import web

from engine_adapter.errors import GenerationError
from engine_adapter.router import headers
from engine_adapter.router.answer_edit import AnswerEdit
from engine_adapter.router.attempt import Attempt
from engine_adapter.router.upstream import Answer

CLIENT_LEFT = GenerationError("client_disconnected", "the client went away")


async def relay(attempt: Attempt, request: web.BaseRequest) -> web.StreamResponse:
    """Answer the client with what an opened attempt says, and finish the attempt.

    Where the engine breaks off, so does the answer: the client must not take it for whole. Where
    the client goes away, the engine's connection is cut, which ends its work.
    """
    response = response_to(attempt.answer)
    try:
        if attempt.answer.is_stream:
            await response.prepare(request)
            await _events(attempt, response)
        else:
            await _document(attempt, response, request)
        await response.write_eof()
        attempt.finish(_unended(attempt))
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


async def _events(attempt: Attempt, response: web.StreamResponse) -> None:
    answer, edit = attempt.answer, attempt.edit
    await _send(edit, response, attempt.first, last=answer.is_read)
    attempt.observe_first()
    while data := await answer.read():
        at_s = time.perf_counter()
        await _send(edit, response, data, last=answer.is_read)
        attempt.observer.feed(data, at_s)
    if rest := edit.rest():
        await response.write(rest)


async def _send(edit: AnswerEdit, response: web.StreamResponse, data: bytes, *, last: bool) -> None:
    """Send what is to be sent on of a stream's bytes; with the last of them, the answer's end."""
    out = edit.feed(data)
    if last:
        await response.write_eof(out + edit.rest())
    elif out:
        await response.write(out)


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
