"""Run one arm's engine in a separate process.

Two arms in one process share the interpreter lock: reading one arm's stream can delay the other's.
Chunks are stamped in the arm's process, by the monotonic clock that all processes of a machine
share. Run as a program, this module is the arm's process.
"""

import asyncio
import contextlib
import itertools
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Self

from engine_adapter import garbage
from engine_adapter.engines.arm_frames import (
    AnswerItem,
    Cancel,
    Failed,
    Frame,
    Generate,
    Open,
    Opened,
    Unusable,
    packed,
    read,
)
from engine_adapter.engines.base import Engine, Item, Probe, Request
from engine_adapter.engines.http_engine import body_of
from engine_adapter.engines.opener import EngineOpener, reader_of
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.routes import HttpRoute, Route

_ENDS_WITHIN_S = 15.0


class ArmProcess(Engine):
    """An engine whose work is done in a separate process."""

    def __init__(self, process: asyncio.subprocess.Process, route: Route, opened: Opened) -> None:
        self._route = route
        self._process = process
        self.info = opened.info
        self._probe = opened.probe
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Queue[AnswerItem | Failed]] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, route: Route) -> Self:
        """Start the process and open the route there; raises `EngineSetupError`."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C stops the run, which then stops its arms
        )
        assert process.stdin is not None  # noqa: S101  # a pipe was asked for
        assert process.stdout is not None  # noqa: S101
        try:
            process.stdin.write(packed(Open(route)))
            said = await read(process.stdout)
        except BaseException:
            process.kill()
            raise
        if isinstance(said, Opened):
            return cls(process, route, said)
        await _ended(process)
        raise EngineSetupError(
            said.message if isinstance(said, Unusable) else "an arm's process ended at its start"
        )

    async def probe(self) -> Probe:
        """Return what the engine reported when it was opened."""
        return self._probe

    def request_body(self, request: Request) -> Mapping[str, Any]:  # Any: JSON values
        """Return the request's body."""
        if isinstance(self._route, HttpRoute):
            return body_of(self._route, reader_of(self._route.engine), request)
        return super().request_body(request)

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of the engine's `generate`; raises its `GenerationError`."""
        number = next(self._numbers)
        queue = self._waiting[number] = asyncio.Queue[AnswerItem | Failed]()
        try:
            if self._reader.done():
                raise _gone()
            self._send(Generate(number, request))
            while True:
                said = await queue.get()
                if isinstance(said, Failed):
                    raise GenerationError(
                        said.error_type,
                        said.message,
                        status=said.status,
                        retry_after_s=said.retry_after_s,
                    )
                if said.item is None:
                    return
                yield said.item
        finally:
            del self._waiting[number]
            self._send(Cancel(number))

    async def close(self) -> None:
        """Stop the process; safe to call twice."""
        await _ended(self._process)
        await self._reader

    def _send(self, frame: Frame) -> None:
        pipe = self._process.stdin
        if pipe is not None and not pipe.is_closing():
            pipe.write(packed(frame))

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  # a pipe was asked for
        while (frame := await read(self._process.stdout)) is not None:
            if isinstance(frame, AnswerItem | Failed) and frame.number in self._waiting:
                self._waiting[frame.number].put_nowait(frame)
        gone = _gone()
        for number, queue in self._waiting.items():
            queue.put_nowait(Failed(number, gone.error_type, str(gone), None, None))


def _gone() -> GenerationError:
    return GenerationError("arm_process_ended", "the process of this arm ended; the run goes on")


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Close the process's input so that it exits; kill it if it does not exit in time."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()


class _Served:
    """The arm's side: serves one engine over frames."""

    def __init__(self, out: asyncio.StreamWriter, engine: Engine) -> None:
        self._out = out
        self._engine = engine
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self, frames: asyncio.StreamReader) -> None:
        while (frame := await read(frames)) is not None:
            if isinstance(frame, Generate):
                task = asyncio.create_task(self._answer(frame))
                self._tasks[frame.number] = task
            elif isinstance(frame, Cancel) and (old := self._tasks.pop(frame.number, None)):
                old.cancel()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _answer(self, frame: Generate) -> None:
        try:
            async with aclosing(self._engine.generate(frame.request)) as items:
                async for item in items:
                    self._out.write(packed(AnswerItem(frame.number, item)))
        except GenerationError as exc:
            failed = Failed(frame.number, exc.error_type, str(exc), exc.status, exc.retry_after_s)
            self._out.write(packed(failed))
        else:
            self._out.write(packed(AnswerItem(frame.number, None)))


async def _main() -> None:
    """Serve one engine over standard input and output, until the input is closed."""
    loop, frames = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(frames), sys.stdin.buffer)
    # A library that prints must not write into the frames.
    private = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, private)
    out = asyncio.StreamWriter(transport, protocol, None, loop)
    first = await read(frames)
    if not isinstance(first, Open):
        return
    try:
        engine = await EngineOpener().open(first.route)
    except EngineSetupError as exc:
        out.write(packed(Unusable(str(exc))))
        await out.drain()
        return
    try:
        out.write(packed(Opened(engine.info, await engine.probe())))
        with garbage.loaded_set_aside():
            await _Served(out, engine).serve(frames)
    finally:
        await engine.close()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
