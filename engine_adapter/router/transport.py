"""The seam between routing and HTTP: a request goes in, and an engine's response comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Header = tuple[bytes, bytes]
"""A header's name and value, as they stand on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """One request to an engine."""

    method: str
    target: str
    """Path below the base, and query, as the client wrote them."""
    headers: Sequence[Header]
    """Without `Host`, `Content-Length` and the engine's key."""
    body: Sequence[bytes]
    """In pieces."""


class Receiver(Protocol):
    """Receives the body of a response, each piece in the call that reads it from the socket."""

    def receive(self, data: bytes, at_s: float) -> bool:
        """Take a piece that came at a time of `time.perf_counter`; return whether more may come.

        A `GenerationError` that it raises ends the response.
        """

    async def drained(self) -> None:
        """Wait until more may come."""

    def receive_last(self, data: bytes) -> None:
        """Take the bytes that came with the end; there may be none."""


class Response(Protocol):
    """A response whose head has come. `close` it, whatever happens."""

    @property
    def status(self) -> int:
        """Its status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, by their names in any case."""

    @property
    def is_stream(self) -> bool:
        """Whether it is server-sent events."""

    @property
    def retries(self) -> int:
        """How often the request had to be sent again."""

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at the end; raises `GenerationError`."""

    async def stream_to(self, receiver: Receiver) -> None:
        """Hand over the body until its end; raises `GenerationError` behind what came before it."""

    def close(self) -> None:
        """Let go of the connection; one whose response was not read to its end is cut."""


class Transport(Protocol):
    """Sends requests to one engine."""

    async def handle_request(self, request: EngineRequest) -> Response:
        """Return the response once its head has come; raises `GenerationError`.

        The request is sent before the first wait if a connection is open.
        """
