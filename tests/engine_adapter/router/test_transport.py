"""The seam between routing and HTTP: an attempt needs no more of an engine than one method."""

import asyncio
from collections.abc import Sequence

from collector.contract import Arm
from engine_adapter.errors import GenerationError
from engine_adapter.router.attempt import Attempt
from engine_adapter.router.decision import Decision
from engine_adapter.router.deferred_work import DeferredWork
from engine_adapter.router.engine_arm import EngineArm
from engine_adapter.router.generation_spans import AttemptContext
from engine_adapter.router.settings import Breaker, Upstream
from engine_adapter.router.trace_context import TraceContext
from engine_adapter.router.transport import EngineRequest, Receiver

EVENTS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)


class Streaming:
    """A transport whose engine streams these pieces; a failure takes the place of the rest."""

    is_stream, status, retries = True, 200, 0

    def __init__(self, *pieces: bytes | GenerationError) -> None:
        self.headers = {"Content-Type": "text/event-stream"}
        self.requests: list[EngineRequest] = []
        self.is_closed = False
        self._pieces = pieces

    async def handle_request(self, request: EngineRequest) -> "Streaming":
        self.requests.append(request)
        return self

    async def read(self) -> bytes:
        raise AssertionError("a stream is handed over")

    async def stream_to(self, receiver: Receiver) -> None:
        for number, piece in enumerate(self._pieces):
            if isinstance(piece, GenerationError):
                raise piece
            if not receiver.receive(piece, float(number)):
                await receiver.drained()
        receiver.receive_last(b"")

    def close(self) -> None:
        self.is_closed = True


class Client:
    """Keeps the response."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.end_of = "nothing"

    def begin(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        del headers
        self.status = status

    def write(self, data: bytes) -> None:
        self.body += data

    def takes_more(self) -> bool:
        return False

    async def drained(self) -> None:
        pass

    def end(self, data: bytes = b"") -> None:
        self.body += data
        self.end_of = "answer"

    def whole(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.begin(status, headers)
        self.end(body)

    def cut(self) -> None:
        self.end_of = "connection"


def answered(arm: Arm, engine: Streaming) -> tuple[bool, Client, Attempt]:
    """Let an arm answer; return whether it did, what its client got, and the recorded attempt."""
    recorded: list[Attempt] = []
    client = Client()

    async def answer() -> bool:
        engine_arm = EngineArm(Upstream(url="http://nowhere"), Breaker())
        engine_arm.transport = engine  # type: ignore[assignment]  # one method of it is needed
        deferred = DeferredWork()
        attempt = Attempt(
            engine_arm,
            EngineRequest(method="POST", target="/chat/completions", headers=(), body=(b"{}",)),
            AttemptContext(
                path="/chat/completions",
                document={},
                decision=Decision(rollout="r", arm=arm, reason="the test"),
                arm=arm,
                place=TraceContext.own(),
            ),
            concurrency=1,
            observed_bytes=1 << 20,
            record=recorded.append,
            deferred=deferred,
        )
        did = await attempt.answer(client)
        deferred.close()
        return did

    did = asyncio.run(answer())
    assert len(recorded) == 1
    assert engine.is_closed
    return did, client, recorded[0]


def test_a_stream_passes_and_is_recorded() -> None:
    """Byte for byte, and with the times at which its chunks came."""
    did, client, attempt = answered(Arm.BASELINE, Streaming(*EVENTS))
    assert (did, client.status, client.end_of) == (True, 200, "answer")
    assert client.body == b"".join(EVENTS)
    assert (attempt.failure, attempt.seen.chunk_times_s) == (None, [0.0])


def test_a_stream_that_breaks_off_cuts_its_client() -> None:
    """So that the answer is not taken for whole."""
    failure = GenerationError("stream_truncated", "broke off")
    did, client, attempt = answered(Arm.BASELINE, Streaming(EVENTS[0], failure))
    assert (did, client.body, client.end_of) == (True, EVENTS[0], "connection")
    assert attempt.failure is failure


def test_a_candidate_that_fails_at_once_leaves_its_client_to_the_baseline() -> None:
    """Nothing was sent: neither a failure before the first piece, nor a first event that is one."""
    failure = GenerationError("connection_reset", "cut")
    error = b'data: {"error": {"message": "no"}}\n\n'
    for engine in (Streaming(failure), Streaming(error), Streaming()):
        did, client, attempt = answered(Arm.CANDIDATE, engine)
        assert (did, client.body, client.end_of) == (False, b"", "nothing")
        assert attempt.failure is not None
