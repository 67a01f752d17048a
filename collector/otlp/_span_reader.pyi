from collections.abc import Callable
from typing import Any

class SpanReader:
    """Reads OTLP trace bodies; for one thread at a time."""

    def __init__(
        self,
        *,
        span: type[tuple[Any, ...]],
        attributes: type[tuple[Any, ...]],
        resource: Callable[[bytes], object],
        describe: Callable[[str], tuple[int, str | None]],
        read_attribute: Callable[[bytes], tuple[Any, ...]],
    ) -> None: ...
    def read(self, body: bytes) -> list[Any] | None: ...
    def known(self) -> int: ...
    def forget(self) -> None: ...

def weigh(body: bytes, schema: bytes, weights: bytes, root: int, most: int, /) -> int: ...
def extent(body: bytes, at: int, /) -> tuple[int, int, int]: ...
