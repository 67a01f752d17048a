"""A cheap load generator for many streams: received bytes are timestamped and parsed later."""

import asyncio
import json
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_END = b"0\r\n\r\n"
_WORD = re.compile(rb'"content": ?"w(\d+) "')


@dataclass
class Streamed:
    """One response, as received."""

    name: str
    sent_s: float = 0.0
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    whole: bool = False

    def word_times_s(self) -> dict[int, float]:
        """Return the arrival time of each word, by its number."""
        found: dict[int, float] = {}
        before = b""
        for at_s, data in self.pieces:
            text = before + data
            for word in _WORD.finditer(text):
                found.setdefault(int(word[1]), at_s)
            before = text[-64:]
        return found


class _Connection(asyncio.Protocol):
    """A connection that sends one request after the other."""

    def __init__(self, head: bytes, names: Sequence[str], start_s: float) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self.streams: list[Streamed] = []
        self._head = head
        self._names = list(reversed(names))
        self._start_s = start_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        asyncio.get_running_loop().call_at(self._start_s, self._ask)

    def _ask(self) -> None:
        if not self._names:
            self._transport.close()
            return
        name = self._names.pop()
        body = json.dumps(
            {"model": "m", "stream": True, "messages": [{"role": "user", "content": name}]}
        ).encode()
        self.streams.append(Streamed(name, time.perf_counter()))
        self._transport.write(self._head % len(body) + body)

    def data_received(self, data: bytes) -> None:
        stream = self.streams[-1]
        stream.pieces.append((time.perf_counter(), data))
        if data.endswith(_END):
            stream.whole = True
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if not self.done.done():
            self.done.set_result(None)


async def ask(url: str, connections: int, requests: int, spread_s: float) -> list[Streamed]:
    """Send `requests` requests on each connection; connections begin at random times."""
    parts = urlsplit(url)
    head = (
        f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Authorization: Bearer sk-none\r\nContent-Type: application/json\r\n"
    ).encode() + b"Content-Length: %d\r\n\r\n"
    loop = asyncio.get_running_loop()
    starts = random.Random(20261121)  # noqa: S311
    made = []
    for number in range(connections):
        names = [f"q{number}-{turn}" for turn in range(requests)]
        start_s = loop.time() + starts.uniform(0.0, spread_s)
        _, connection = await loop.create_connection(
            lambda names=names, start_s=start_s: _Connection(head, names, start_s),  # type: ignore[misc]
            parts.hostname or "",
            parts.port or 80,
        )
        made.append(connection)
    await asyncio.gather(*(connection.done for connection in made))
    return [stream for connection in made for stream in connection.streams]
