"""The messages between a run and an arm's process: pickled frames with a length prefix.

Both ends are the same installation and the pipe is private to them, so pickle is safe here.
"""

import asyncio
import pickle
import struct
from dataclasses import dataclass

from engine_adapter.engines.base import EngineInfo, Item, Probe, Request
from engine_adapter.routes import Route

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Open:
    """Open this route; the first frame, sent once."""

    route: Route


@dataclass(frozen=True, slots=True)
class Opened:
    """The route is ready for requests."""

    info: EngineInfo
    probe: Probe


@dataclass(frozen=True, slots=True)
class Unusable:
    """The route cannot be opened."""

    message: str


@dataclass(frozen=True, slots=True)
class Generate:
    """Answer a request; replies carry the same number."""

    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel this request."""

    number: int


@dataclass(frozen=True, slots=True)
class AnswerItem:
    """An item of an answer; `None` marks its end."""

    number: int
    item: Item | None


@dataclass(frozen=True, slots=True)
class Failed:
    """An answer failed."""

    number: int
    error_type: str
    message: str
    status: int | None
    retry_after_s: float | None


Frame = Open | Opened | Unusable | Generate | Cancel | AnswerItem | Failed


def packed(frame: Frame) -> bytes:
    """Return the frame's bytes with their length in front."""
    body = pickle.dumps(frame)
    return _LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader) -> Frame | None:
    """Return the next frame; `None` if the other end has closed the pipe."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        frame: Frame = pickle.loads(await reader.readexactly(length))  # noqa: S301  # our own process
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return frame
