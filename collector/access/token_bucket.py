"""A token bucket: a rate limit that allows one second's requests as a burst."""

import math


class TokenBucket:
    """Holds up to one second's tokens, and at least one; not thread-safe."""

    def __init__(self, rate_per_s: float, now_s: float) -> None:
        self.rate_per_s = rate_per_s
        self._size = max(1.0, rate_per_s)
        self._tokens = self._size
        self._filled_s = now_s

    def take(self, now_s: float) -> int:
        """Take a token and return 0, or return the whole seconds until one is available."""
        self._tokens = min(self._size, self._tokens + (now_s - self._filled_s) * self.rate_per_s)
        self._filled_s = now_s
        if self._tokens >= 1:
            self._tokens -= 1
            return 0
        return math.ceil((1 - self._tokens) / self.rate_per_s)
