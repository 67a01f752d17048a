"""What the collector received since its start, counted once a request."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock


@dataclass(slots=True)
class SignalCounts:
    """Counts of one signal's items: spans, log records or metric points."""

    received: int = 0
    """Items of the requests that were answered as stored."""
    ignored: int = 0
    """Of these, items of a kind that is not stored: other logs, other metrics."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Of these, items that the partial success refused, by reason; the reasons are few."""
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that were refused whole, by the name of their gRPC status code."""


class Counters:
    """Counts by signal; the attributes may be read at any time."""

    def __init__(self) -> None:
        self.traces = SignalCounts()
        self.logs = SignalCounts()
        self.metrics = SignalCounts()
        self._lock = Lock()  # HTTP counts in the event loop, gRPC in its threads

    def answered(
        self, counts: SignalCounts, *, received: int, ignored: int, rejected: Iterable[str]
    ) -> None:
        """Count a request that was answered as stored."""
        with self._lock:
            counts.received += received
            counts.ignored += ignored
            counts.rejected.update(rejected)

    def refused(self, counts: SignalCounts, code: str) -> None:
        """Count a request that was refused whole."""
        with self._lock:
            counts.refused[code] += 1
