"""Scores on their way to the collector: many in a post, and none kept waiting for long."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from collector.contract import Score

BATCH: Final = 200
MAX_UNPOSTED_S: Final = 5.0
"""However slow a judge is, no score waits longer than this for others to be posted with."""


class Posting:
    """Gathers scores and posts them."""

    def __init__(self, post: Callable[[list[Score]], object]) -> None:
        self._post = post
        self._batch: list[Score] = []
        self._posted_s = time.monotonic()

    def add(self, scores: Iterable[Score]) -> None:
        """Take scores, and post what is due."""
        self._batch += scores
        late = time.monotonic() - self._posted_s > MAX_UNPOSTED_S
        if len(self._batch) >= BATCH or (self._batch and late):
            self.flush()

    def flush(self) -> None:
        """Post what is left."""
        batch, self._batch = self._batch, []
        self._posted_s = time.monotonic()
        if batch:
            self._post(batch)
