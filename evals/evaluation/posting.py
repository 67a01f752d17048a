"""Post scores to the collector in batches, without holding any score back for long."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from collector.contract import Score

BATCH: Final = 200
MAX_UNPOSTED_S: Final = 5.0
"""Seconds since the last post after which `add` posts an incomplete batch."""


class Posting:
    """Collects scores and posts them in batches."""

    def __init__(self, post: Callable[[list[Score]], object]) -> None:
        self._post = post
        self._batch: list[Score] = []
        self._posted_s = time.monotonic()

    def add(self, scores: Iterable[Score]) -> None:
        """Add scores; post them if the batch is full or overdue."""
        self._batch += scores
        late = time.monotonic() - self._posted_s > MAX_UNPOSTED_S
        if len(self._batch) >= BATCH or (self._batch and late):
            self.flush()

    def flush(self) -> None:
        """Post the remaining scores."""
        batch, self._batch = self._batch, []
        self._posted_s = time.monotonic()
        if batch:
            self._post(batch)
