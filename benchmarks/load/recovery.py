"""Recovery time: how soon a collector accepts requests again after an overload."""

import statistics
import time
from collections import deque
from contextlib import closing
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from benchmarks.load.sender import PROTOBUF, connect, post
from benchmarks.load.spans import Spans

_REQUESTS: Final = 12
"""Number of last requests whose median time is compared."""
_WITHIN_S: Final = 120.0
_MADE_BEFOREHAND: Final = 32
_ASKS_EVERY_S: Final = 0.2


class Recovered(NamedTuple):
    """Recovery times, in seconds from the end of the load."""

    first_accepted_after_s: float
    normal_after_s: float
    accepted: int
    """Requests accepted until then."""


class Probe:
    """Sends requests after the load ends, to find when they are accepted again."""

    def __init__(self, url: str, batch: int) -> None:
        """Create the requests beforehand, because that takes seconds."""
        self._url = url
        self._bodies = Spans(3, first_start_unix_ns=time.time_ns()).many(
            batch, 10**9, distinct=_MADE_BEFOREHAND
        )
        self._ready = deque(next(self._bodies) for _ in range(_MADE_BEFOREHAND))

    def recover(self, ends_s: float, *, within_s: float) -> Recovered:
        """Return when a request was first accepted, and when the median was at most `within_s`."""
        first_s: float | None = None
        accepted = 0
        lately: list[float] = []
        time.sleep(max(0.0, ends_s - time.perf_counter()))
        with closing(connect(self._url)) as connection:
            while (begun_s := time.perf_counter()) < ends_s + _WITHIN_S:
                body = self._ready.popleft() if self._ready else next(self._bodies)
                status = post(connection, urlsplit(self._url).path, body.content, PROTOBUF)
                if status != HTTPStatus.OK:
                    self._ready.appendleft(body)
                    time.sleep(_ASKS_EVERY_S)
                    continue
                answered_s = time.perf_counter()
                accepted += 1
                first_s = first_s or answered_s
                lately = [*lately[1 - _REQUESTS :], answered_s - begun_s]
                if statistics.median(lately) <= within_s:
                    return Recovered(first_s - ends_s, answered_s - ends_s, accepted)
        raise SystemExit(f"no recovery within {_WITHIN_S:.0f} s of the load's end")
