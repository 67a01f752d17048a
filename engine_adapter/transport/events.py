"""Decode server-sent events from bytes that arrive in arbitrary pieces."""

from collections.abc import Iterator
from typing import NamedTuple

from engine_adapter.errors import GenerationError

MAX_EVENT_BYTES = 4 << 20


class Event(NamedTuple):
    """One event of a stream."""

    data: str
    name: str | None
    """The `event:` field; most engines send none."""
    at_s: float
    """Reading of `time.perf_counter` when the event's last byte reached this machine."""


class EventDecoder:
    """Buffers bytes until an event is complete.

    Raises `GenerationError` for an event beyond `max_bytes` and for bytes that are not UTF-8.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._cut_cr = False

    @property
    def pending(self) -> bytes:
        """The bytes of an event that has not ended."""
        return bytes(self._buffer).strip()

    @property
    def is_within_event(self) -> bool:
        """Whether the next byte may continue an event or a CR LF."""
        return bool(self._buffer) or self._cut_cr

    def feed(self, data: bytes, at_s: float) -> Iterator[Event]:
        """Yield the events that end in these bytes."""
        self._buffer += self._with_plain_newlines(data)
        end = self._buffer.rfind(b"\n\n", self._searched)
        if end >= 0:
            blocks = bytes(self._buffer[:end])
            del self._buffer[: end + 2]
            for block in blocks.split(b"\n\n"):
                self._check_size(len(block))
                event = _event(block, at_s)
                if event is not None:
                    yield event
        self._searched = max(0, len(self._buffer) - 1)
        self._check_size(len(self._buffer))

    def _with_plain_newlines(self, data: bytes) -> bytes:
        if self._cut_cr and data.startswith(b"\n"):  # its CR ended the previous piece
            data = data[1:]
        self._cut_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise GenerationError(
                "event_too_large",
                f"an event of more than {self._max_bytes} bytes; wanted one chunk an event",
            )


def _event(block: bytes, at_s: float) -> Event | None:
    """Return the block's event; `None` if it has no data, such as a comment."""
    try:
        text = block.decode()
    except UnicodeDecodeError as exc:
        raise GenerationError(
            "invalid_utf8", f"an event is not UTF-8 (byte {exc.start} of {block[:80]!r})"
        ) from exc
    if text.startswith("data: ") and "\n" not in text:
        return Event(text[6:], None, at_s)
    data: list[str] = []
    name = None
    for line in text.split("\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    return Event("\n".join(data), name, at_s) if data else None
