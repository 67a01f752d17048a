"""Record one answer as the client observed it, by the client's clock."""

import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import pairwise

from engine_adapter.engines.answer import Answer
from engine_adapter.engines.base import Engine, Request, Sent
from engine_adapter.errors import GenerationError

_GAPS_FOR_P99 = 100


@dataclass(slots=True, kw_only=True)
class ObservedAnswer:
    """One streamed answer, complete or broken off, with its times.

    Times are readings of `time.perf_counter`.
    """

    concurrency: int
    """Requests in flight when it began, including this one."""
    due_s: float | None
    """The scheduled time of sending; `None` in a closed loop."""
    started_s: float
    sent_s: float | None = None
    ended_s: float = 0.0
    chunk_times_s: list[float] = field(default_factory=list)
    read_late_s: float | None = None
    """How late the chunks' times may be because several were read late together."""
    first_answer_s: float | None = None
    """When the first chunk of the answer itself arrived, after any reasoning."""
    answer: Answer | None = None
    """The answer; if it broke off, the part that had arrived."""
    error: GenerationError | None = None

    def add_chunks(self, at_s: float, number: int = 1, *, is_answer: bool = True) -> None:
        """Add `number` chunks that arrived at the same time."""
        self.chunk_times_s += [at_s] * number
        if number and is_answer and self.first_answer_s is None:
            self.first_answer_s = at_s

    def forget_chunks(self) -> None:
        """Discard the chunks' times."""
        self.chunk_times_s.clear()
        self.first_answer_s = None

    @property
    def origin_s(self) -> float:
        """The start of the latency: the scheduled time, else the time of sending.

        Counting from the scheduled time includes the wait of a request for its turn, as its user
        experiences it. Counted from sending, a stalled engine would get fewer requests and look
        fast (coordinated omission).
        """
        if self.due_s is not None:
            return self.due_s
        return self.started_s if self.sent_s is None else self.sent_s

    @property
    def client_lag_s(self) -> float | None:
        """How late the load generator was in sending or reading; `None` if not measured."""
        sent_late_s = None if self.due_s is None else max(0.0, self.started_s - self.due_s)
        known = [late_s for late_s in (sent_late_s, self.read_late_s) if late_s is not None]
        return max(known, default=None)

    @property
    def ttft_s(self) -> float | None:
        """Time to the first chunk with content."""
        return self.chunk_times_s[0] - self.origin_s if self.chunk_times_s else None

    @property
    def ttfo_s(self) -> float | None:
        """Time to the first chunk of the answer itself."""
        return None if self.first_answer_s is None else self.first_answer_s - self.origin_s

    @property
    def duration_s(self) -> float:
        """End-to-end time."""
        return self.ended_s - self.origin_s

    @property
    def start_unix_ns(self) -> int:
        """The origin by the wall clock, which may jump: do not compute durations from it."""
        return time.time_ns() - round((time.perf_counter() - self.origin_s) * 1e9)

    @property
    def max_gap_s(self) -> float | None:
        """The longest gap between two chunks; `None` for fewer than two."""
        return max(self._gaps_s(), default=None)

    @property
    def p99_gap_s(self) -> float | None:
        """The nearest-rank 99th percentile of the gaps; `None` for fewer than 100."""
        gaps_s = self._gaps_s()
        if len(gaps_s) < _GAPS_FOR_P99:
            return None
        return sorted(gaps_s)[-(-len(gaps_s) * 99 // 100) - 1]

    def tpot_s(self, output_tokens: int | None) -> float | None:
        """Return (end − first token) / (output tokens − 1); `None` below two tokens or chunks."""
        if output_tokens is None or output_tokens < 2 or len(self.chunk_times_s) < 2:
            return None
        return (self.chunk_times_s[-1] - self.chunk_times_s[0]) / (output_tokens - 1)

    def _gaps_s(self) -> Sequence[float]:
        return [later - earlier for earlier, later in pairwise(self.chunk_times_s)]


async def observe(
    engine: Engine, request: Request, *, concurrency: int, due_s: float | None
) -> ObservedAnswer:
    """Send one request and return the observed answer, or its failure."""
    seen = ObservedAnswer(concurrency=concurrency, due_s=due_s, started_s=time.perf_counter())
    try:
        async with aclosing(engine.generate(request)) as items:
            async for item in items:
                if isinstance(item, Answer):
                    seen.answer = item
                elif isinstance(item, Sent):
                    seen.sent_s = item.at_s
                else:
                    seen.add_chunks(item.at_s, is_answer=item.is_answer)
                    seen.read_late_s = item.late_s
    except GenerationError as exc:
        seen.error = exc
    seen.ended_s = time.perf_counter()
    if seen.error is None and seen.chunk_times_s:  # the rest after the last chunk is bookkeeping
        seen.ended_s = seen.chunk_times_s[-1]
    return seen
