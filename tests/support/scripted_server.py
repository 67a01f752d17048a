"""A process that answers HTTP by a script, byte for byte and at exact times, and keeps a log.

Its log holds when each request arrived and when each piece was written, by `time.perf_counter`,
which all processes share on Linux, so a client's measurements can be compared with the log.
"""

import asyncio
import base64
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

OPENAI = "/v1/chat/completions"


@dataclass(frozen=True)
class Step:
    """One write."""

    wait_s: float
    """Since the step before; of the first, since the request had arrived."""
    data: str
    """Base64, since a script travels as JSON."""

    @classmethod
    def of(cls, data: bytes, wait_s: float = 0.0) -> "Step":
        return cls(wait_s, base64.b64encode(data).decode())


@dataclass(frozen=True)
class Reply:
    """A scripted answer."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    end: str = "whole"
    """`whole`, `cut` (the connection is closed in the middle) or `hang` (nothing more comes)."""


@dataclass(frozen=True)
class Route:
    """Which requests a reply is for; where several fit, the first."""

    reply: Reply
    path: str = OPENAI
    model: str | None = None
    """The `model` of the body."""


@dataclass(frozen=True)
class Received:
    """One request, as the server saw it."""

    path: str
    headers: Mapping[str, str]
    body: Any
    at_s: float
    """When it had arrived."""
    written_s: Sequence[float]
    """When each step was written."""
    status: int
    cut: bool = False
    """Whether the client went away before the end."""


@dataclass(frozen=True)
class Server:
    """A running script."""

    root: str
    process: "subprocess.Popen[str]"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def log(self) -> list[Received]:
        """Return the requests so far, in order of arrival."""
        with urllib.request.urlopen(f"{self.root}/_log") as answer:  # noqa: S310
            return [Received(**entry) for entry in json.load(answer)]


def json_reply(document: object, status: int = 200, **headers: str) -> Reply:
    """Return a JSON answer."""
    named = {"content-type": "application/json"} | {
        key.replace("_", "-"): value for key, value in headers.items()
    }
    return Reply([Step.of(json.dumps(document).encode())], status, named)


def events(steps: Sequence[Step] = (), end: str = "whole") -> Reply:
    """Return a stream of server-sent events."""
    return Reply(steps, headers={"content-type": "text/event-stream"}, end=end)


def event(document: object, wait_s: float = 0.0) -> Step:
    """Return an event that holds JSON, or text such as `[DONE]`."""
    text = document if isinstance(document, str) else json.dumps(document)
    return Step.of(f"data: {text}\n\n".encode(), wait_s)


def delta(content: dict[str, Any] | None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a chunk of the OpenAI API; without content, one without choices."""
    choices = [] if content is None else [{"index": 0, "delta": content, "finish_reason": reason}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "served",
        "choices": choices,
    } | more


def chat(
    texts: Sequence[str],
    *,
    ttft_s: float = 0.0,
    gap_s: float = 0.0,
    usage: Mapping[str, Any] | None = None,
) -> Reply:
    """Return a whole chat stream: the role, the texts, the finish reason, usage, `[DONE]`."""
    counted = usage or {"prompt_tokens": 7, "completion_tokens": len(texts)}
    steps = [event(delta({"role": "assistant", "content": ""}))]
    steps += [
        event(delta({"content": text}), ttft_s if number == 0 else gap_s)
        for number, text in enumerate(texts)
    ]
    steps += [event(delta({}, "stop")), event(delta(None, usage=counted)), event("[DONE]")]
    return events(steps)


@contextmanager
def running(
    *routes: Route, models: Sequence[str] = (), kernel_stamps: bool = False
) -> Iterator[Server]:
    """Serve the script on a free port, in a process of its own.

    With `kernel_stamps` a request's time is when its bytes reached the machine, and not when this
    process came to read them: with hundreds at once that is many milliseconds later.
    """
    listed = json_reply({"object": "list", "data": [{"id": model} for model in models]})
    script = [*routes, *([Route(listed, path="/v1/models")] if models else [])]
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), *(["kernel"] if kernel_stamps else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        process.stdin.write(json.dumps([asdict(route) for route in script]) + "\n")
        process.stdin.flush()
        yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}", process)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


# The process


def main() -> None:
    """Serve the script that stands on standard input until killed."""
    script = [_route(entry) for entry in json.loads(sys.stdin.readline())]
    asyncio.run(_serve(script))


def _route(entry: dict[str, Any]) -> Route:
    reply = Reply(**entry["reply"] | {"steps": [Step(**step) for step in entry["reply"]["steps"]]})
    return Route(reply, entry["path"], entry["model"])


async def _serve(script: list[Route]) -> None:
    log: list[Received] = []
    loop = asyncio.get_running_loop()
    prepared = [(route, _pieces(route.reply)) for route in script]
    listener = _listener()
    listener.bind(("127.0.0.1", 0))
    server = await loop.create_server(
        lambda: _Connection(loop, prepared, log), sock=listener, backlog=2048
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def _listener() -> socket.socket:
    # Named as TCP: asyncio sends small writes at once on such sockets alone, as servers do.
    kind = {"family": socket.AF_INET, "type": socket.SOCK_STREAM, "proto": socket.IPPROTO_TCP}
    if "kernel" not in sys.argv:
        return socket.socket(**kind)
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    from engine_adapter.transport.stamped_socket import StampedSocket

    class Listener(StampedSocket):
        def accept(self) -> tuple[socket.socket, Any]:
            number, address = self._accept()  # type: ignore[attr-defined]
            accepted = StampedSocket(**kind, fileno=number)
            accepted.setblocking(False)
            accepted.ask_for_stamps()
            _STAMPED[accepted.getpeername()] = accepted
            return accepted, address

    listener = Listener(**kind)
    listener.ask_for_stamps()
    return listener


_STAMPED: dict[Any, Any] = {}
"""Sockets that stamp, by the client's address."""


def _pieces(reply: Reply) -> list[bytes]:
    """Return the bytes of each step, as pieces of a chunked body."""
    found = []
    for step in reply.steps:
        data = base64.b64decode(step.data)
        found.append(b"%x\r\n%s\r\n" % (len(data), data) if data else b"")
    return found


_NO_SCRIPT = json_reply({"error": {"message": "no script for this"}}, 404)


class _Connection(asyncio.Protocol):
    """One client's connection: reads requests one after another, and plays their replies."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        script: list[tuple[Route, list[bytes]]],
        log: list[Received],
    ) -> None:
        self.loop, self.script, self.log = loop, script, log
        self.buffer = b""
        self.gone = False
        self.entry = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.gone = True

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        size = int(headers.get("content-length", 0))
        if len(rest) < size:
            return
        self.buffer = rest[size:]
        self.answer(first.split(" ")[1], headers, json.loads(rest[:size]) if size else None)

    def answer(self, path: str, headers: dict[str, str], body: Any) -> None:
        stamped = _STAMPED.get(self.transport.get_extra_info("peername"))
        now_s = stamped.received_s if stamped is not None else time.perf_counter()
        if path == "/_log":
            whole = json.dumps([asdict(entry) for entry in self.log]).encode()
            self.transport.write(_head(200, {}) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(whole), whole))
            return
        model = body.get("model") if isinstance(body, dict) else None
        reply, pieces = next(
            (
                (route.reply, pieces)
                for route, pieces in self.script
                if route.path == path and route.model in (None, model)
            ),
            (_NO_SCRIPT, _pieces(_NO_SCRIPT)),
        )
        self.entry = len(self.log)
        self.log.append(Received(path, headers, body, now_s, [], reply.status))
        self.transport.write(_head(reply.status, reply.headers))
        self.play(reply, pieces, 0, self.loop.time())

    def play(self, reply: Reply, pieces: list[bytes], number: int, then_s: float) -> None:
        """Write the pieces that are due now, and schedule the rest."""
        while number < len(pieces):
            due_s = then_s + reply.steps[number].wait_s
            if due_s > self.loop.time():
                self.loop.call_at(due_s, self.play, reply, pieces, number, then_s)
                return
            if self.gone:
                self.log[self.entry] = replace(self.log[self.entry], cut=True)
                return
            self.log[self.entry].written_s.append(time.perf_counter())  # type: ignore[attr-defined]
            self.transport.write(pieces[number])
            number, then_s = number + 1, due_s
        if reply.end == "whole":
            self.transport.write(b"0\r\n\r\n")
        elif reply.end == "cut":
            self.transport.close()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", "transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


if __name__ == "__main__":
    main()
