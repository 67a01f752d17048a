"""The interface between routing and HTTP: send a request, get the engine's response."""

from collections.abc import Mapping, Sequence
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


class Response(Protocol):
    """A response whose head has arrived. Always `close` it."""

    @property
    def status(self) -> int:
        """Its status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers; names are case-insensitive."""

    @property
    def is_stream(self) -> bool:
        """Whether it is server-sent events."""

    @property
    def retries(self) -> int:
        """The number of times that the request was sent again."""

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at the end; raises `GenerationError`."""

    async def stream_to(self, receiver: Receiver) -> None:
        """Hand over the whole body.

        Raises `GenerationError` after handing over all that arrived before the failure.
        """

    def close(self) -> None:
        """Release the connection; close it if the response was not read to its end."""


class Transport(Protocol):
    """Sends requests to one engine."""

    async def handle_request(self, request: EngineRequest) -> Response:
        """Return the response once its head has arrived; raises `GenerationError`.

        If a connection is open, the request is sent before the first wait.
        """
