"""Wait for what another thread or process brings about, as long as a busy machine may take."""

import time
from collections.abc import Callable
from typing import TypeVar

import httpx

Found = TypeVar("Found")


def until(holds: Callable[[], Found], what: str = "", *, within_s: float = 200.0) -> Found:
    """Return the function's result once it is true; fail if it is not in time."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what or holds}"
        time.sleep(0.01)
    return found


def until_queued(url: str) -> None:
    """Wait until a collector has a body that waits to be stored."""
    until(lambda: "ingest_queue_bytes 0" not in httpx.get(f"{url}/metrics").text)
