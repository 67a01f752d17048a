"""A token bucket: so many requests a second, and as many at once."""

import math


class TokenBucket:
    """Holds up to one second's tokens, and at least one; not safe for threads by itself."""

    def __init__(self, rate_per_s: float, now_s: float) -> None:
        self.rate_per_s = rate_per_s
        self._size = max(1.0, rate_per_s)
        self._tokens = self._size
        self._filled_s = now_s

    def take(self, now_s: float) -> int:
        """Take a token and return 0, or return after how many whole seconds there will be one."""
        self._tokens = min(self._size, self._tokens + (now_s - self._filled_s) * self.rate_per_s)
        self._filled_s = now_s
        if self._tokens >= 1:
            self._tokens -= 1
            return 0
        return math.ceil((1 - self._tokens) / self.rate_per_s)
