"""A circuit breaker: stop sending to an upstream after several consecutive failures."""

import time
from collections.abc import Callable

from engine_adapter.router.settings import Breaker


class CircuitBreaker:
    """Counts one upstream's consecutive failures; while open, it lets one trial request through.

    A trial is allowed every `open_s` seconds.
    """

    def __init__(self, settings: Breaker, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._tries_at_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the upstream has failed too often in a row."""
        return self._failures >= self._settings.failures

    def allows(self) -> bool:
        """Return whether a request may be sent; while open, each `True` is one trial."""
        if not self.is_open:
            return True
        now_s = self._clock()
        if now_s < self._tries_at_s:
            return False
        self._tries_at_s = now_s + self._settings.open_s  # a trial that hangs blocks no later one
        return True

    def succeeded(self) -> None:
        """Close the breaker: the upstream answered."""
        self._failures = 0

    def failed(self) -> None:
        """Count a failure; open the breaker if there were too many in a row."""
        self._failures += 1
        if self.is_open:
            self._tries_at_s = self._clock() + self._settings.open_s
