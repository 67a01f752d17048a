"""Pass an engine's answer on to the client, byte by byte as it arrives."""

from engine_adapter.errors import GenerationError
from engine_adapter.router.answer_edit import AnswerEdit
from engine_adapter.router.attempt import Attempt
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.http1 import headers
from engine_adapter.router.http1.client_answer import ClientAnswer
from engine_adapter.router.http1.engine_answer import Answer

CLIENT_LEFT = GenerationError("client_disconnected", "the client went away")


async def relay(attempt: Attempt, client: ClientAnswer, afterwards: DeferredWork) -> None:
    """Answer the client with what an opened attempt says, and finish the attempt.

    Raises `GenerationError` where the engine breaks off before the client was sent anything: the
    attempt is not finished then. Where it does later, so does the answer: the client must not take
    it for whole. What no user waits for is done `afterwards`, where the answer came to its end.
    """
    try:
        if attempt.is_stream:
            client.begin(attempt.answer.status, headers.of_answer(attempt.answer.headers))
            await attempt.hand_on(_Stream(attempt.edit, client))
        else:
            await _document(attempt, client)
        attempt.let_go()
        afterwards.add(lambda: attempt.finish(_unended(attempt)))
    except GenerationError as exc:
        if not attempt.has_begun:
            raise
        attempt.finish(exc)
        client.write(attempt.edit.rest())
        client.cut()


def _unended(attempt: Attempt) -> GenerationError | None:
    """Return the failure of a stream that its engine closed before the answer was whole."""
    observer = attempt.observer
    if not attempt.answer.is_stream or observer.ended or observer.unread:
        return None
    return GenerationError("stream_truncated", "the stream ended before the answer did")


class _Stream:
    """The way of one stream to its client."""

    def __init__(self, edit: AnswerEdit, client: ClientAnswer) -> None:
        self._edit = edit
        self._client = client
        self.drained = client.drained

    def deliver(self, data: bytes) -> bool:
        """Send what is to be sent of a piece."""
        self._client.write(self._edit.feed(data))
        return self._client.takes_more()

    def end(self, data: bytes) -> None:
        """Send what is left, and the end."""
        self._client.end(self._edit.feed(data) + self._edit.rest())


async def _document(attempt: Attempt, client: ClientAnswer) -> None:
    status, named = attempt.answer.status, headers.of_answer(attempt.answer.headers)
    if attempt.is_whole:
        client.whole(status, named, attempt.edit.whole(attempt.body))
        return
    client.begin(status, named)
    client.write(attempt.body)
    while data := await attempt.read():
        client.write(data)
        await client.drained()
    client.end()


async def pass_through(answer: Answer, client: ClientAnswer) -> None:
    """Answer the client with an engine's answer that nobody observes, and let go of it.

    Where the engine breaks off, so does the answer.
    """
    try:
        length = answer.headers.get("Content-Length", "")
        client.begin(
            answer.status,
            headers.of_answer(answer.headers),
            int(length) if length.isdecimal() else None,
        )
        while data := await answer.read():
            client.write(data)
            await client.drained()
        client.end()
    except GenerationError:
        client.cut()
    finally:
        answer.close()
