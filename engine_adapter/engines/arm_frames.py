"""What a run and the process of one of its arms tell each other, one pickled frame at a time.

Both ends are the same installation and the pipe is private to them, so that pickle may be trusted.
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
    """Open this route; comes first, once."""

    route: Route


@dataclass(frozen=True, slots=True)
class Opened:
    """The route can be asked."""

    info: EngineInfo
    probe: Probe


@dataclass(frozen=True, slots=True)
class Unusable:
    """The route cannot be opened."""

    message: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer a request under this number."""

    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class Drop:
    """Nobody waits for this answer any more."""

    number: int


@dataclass(frozen=True, slots=True)
class AnswerItem:
    """An item of an answer; none is its end."""

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


Frame = Open | Opened | Unusable | Ask | Drop | AnswerItem | Failed


def packed(frame: Frame) -> bytes:
    """Return the frame with its length in front."""
    body = pickle.dumps(frame)
    return _LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader) -> Frame | None:
    """Return the next frame; `None` if the other end is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        frame: Frame = pickle.loads(await reader.readexactly(length))  # noqa: S301  # our own process
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return frame
