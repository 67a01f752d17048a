"""One gRPC call: its headers, and the message that its peer sends piece by piece."""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from google.rpc.code_pb2 import Code
from google.rpc.status_pb2 import Status

PREFIX_BYTES: Final = 5
"""Length of gRPC's prefix of a message: whether it is compressed, and its length."""
_PLAIN, _COMPRESSED = 0, 1
_TYPE: Final = re.compile(r"application/grpc(\+proto)?(;.*)?", re.IGNORECASE | re.DOTALL)


class CallRefusedError(Exception):
    """A call is refused with a gRPC status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.status = Status(code=code, message=message)


class Call:
    """One unary call; use only in the event loop."""

    def __init__(
        self,
        stream: int,
        headers: Mapping[str, str],
        due_s: float,
        turns: tuple[asyncio.Semaphore, asyncio.Semaphore],
        on_change: Callable[[], None],
    ) -> None:
        """Begin a call; `turns` are those of its connection, and of all connections.

        `on_change` is called when the message is asked for, and when it is taken.
        """
        self.stream = stream
        self.headers = headers
        """The head, with pseudo-headers; the last one of a name counts."""
        self.due_s = due_s
        """The peer's deadline, by the loop's clock."""
        self.is_wanted = False
        """Whether the message is asked for: not before the key and the length are checked."""
        self.is_taken = False
        """Whether the message is worked on: then it is no longer held here."""
        self.task: asyncio.Task[None] | None = None
        self.coding = ""
        """The message's compression, known with its length; empty if there is none."""
        self._own_turns, self._all_turns = turns
        self._on_change = on_change
        self._received = bytearray()
        loop = asyncio.get_running_loop()
        self._complete: asyncio.Future[None] = loop.create_future()
        self._announced: asyncio.Future[int] = loop.create_future()

    @property
    def is_grpc(self) -> bool:
        """Whether the request's type is gRPC's; a web page may not send it unasked."""
        type_ = self.headers.get("content-type", "")
        return self.headers.get(":method") == "POST" and _TYPE.fullmatch(type_) is not None

    @property
    def held_bytes(self) -> int:
        """Bytes held of a message that is not taken."""
        return len(self._received)

    @property
    def is_waiting(self) -> bool:
        """Whether the message is incomplete."""
        return not self._complete.done()

    @property
    def missing_bytes(self) -> int:
        """Bytes that the message still lacks; 0 if its length is unknown."""
        if not self._announced.done():
            return 0
        return max(0, PREFIX_BYTES + self._announced.result() - len(self._received))

    async def announced_bytes(self) -> int:
        """Return the length of the message as sent, as soon as its prefix says it."""
        return await self._announced

    @asynccontextmanager
    async def message(self) -> AsyncIterator[bytes]:
        """Yield the message as sent, once it is complete and it is its turn."""
        self.is_wanted = True
        if self.is_waiting:
            self._on_change()
        await self._complete
        async with self._own_turns, self._all_turns:
            self.is_taken = True
            with memoryview(self._received) as received:
                message = bytes(received[PREFIX_BYTES:])
            self._received = bytearray()
            self._on_change()
            yield message

    def add(self, piece: bytes) -> None:
        """Take a piece; raises `CallRefusedError` if the message cannot be valid."""
        self._received += piece
        if len(self._received) < PREFIX_BYTES:
            return
        if not self._announced.done():
            self.coding = self._coding_of(self._received[0])
            self._announced.set_result(int.from_bytes(self._received[1:PREFIX_BYTES], "big"))
        if len(self._received) > PREFIX_BYTES + self._announced.result():
            raise CallRefusedError(Code.UNIMPLEMENTED, "more than one message; send one a call")

    def end(self) -> None:
        """Complete the message; raises `CallRefusedError` if some of it is missing."""
        if not self._announced.done() or self.missing_bytes:
            raise CallRefusedError(Code.INVALID_ARGUMENT, "the message is truncated; send it again")
        self.due_s = math.inf
        self._complete.set_result(None)

    def cancel(self) -> None:
        """Free the message and end the call's task, unless the message is taken."""
        if not self.is_taken:
            self._received = bytearray()  # reference cycles would keep it
            if self.task is not None:
                self.task.cancel()

    def _coding_of(self, flag: int) -> str:
        coding = self.headers.get("grpc-encoding", "identity")
        if flag not in (_PLAIN, _COMPRESSED) or (flag == _COMPRESSED and coding == "identity"):
            raise CallRefusedError(
                Code.INTERNAL, "the message's prefix does not agree with its grpc-encoding"
            )
        return coding if flag == _COMPRESSED else ""
