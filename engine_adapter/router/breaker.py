"""Leave an upstream alone for a while once it has failed several times in a row."""

import time
from collections.abc import Callable

from engine_adapter.router.settings import Breaker


class CircuitBreaker:
    """Counts one upstream's failures; while it is open, one request at a time may try again."""

    def __init__(self, settings: Breaker, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._tries_at_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the upstream counts as failing."""
        return self._failures >= self._settings.failures

    def allows(self) -> bool:
        """Say whether a request may be sent; each time it may while open is one trial."""
        if not self.is_open:
            return True
        now_s = self._clock()
        if now_s < self._tries_at_s:
            return False
        self._tries_at_s = now_s + self._settings.open_s  # a trial that never ends blocks nothing
        return True

    def succeeded(self) -> None:
        """Close: the upstream answered."""
        self._failures = 0

    def failed(self) -> None:
        """Count a failure, and open where it was one too many."""
        self._failures += 1
        if self.is_open:
            self._tries_at_s = self._clock() + self._settings.open_s
