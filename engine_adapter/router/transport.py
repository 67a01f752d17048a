"""A request to an engine, and the receiver of the response's body."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Header = tuple[bytes, bytes]
"""A header's name and value as bytes on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """One request to an engine."""

    method: str
    target: str
    """Path below the base URL, and query, as the client wrote them."""
    headers: Sequence[Header]
    """Without `Host`, `Content-Length` and the engine's key."""
    body: Sequence[bytes]
    """In pieces."""


class Receiver(Protocol):
    """Receives the body of a response, each piece in the call that reads it from the socket."""

    def receive(self, data: bytes, at_s: float) -> bool:
        """Handle a piece that arrived at `at_s` (`time.perf_counter`).

        Return whether the receiver can take more. Raising `GenerationError` ends the response.
        """

    async def drained(self) -> None:
        """Wait until the receiver can take more."""

    def receive_last(self, data: bytes) -> None:
        """Handle the bytes that arrived with the end, possibly none."""
