"""Generations as rows for the store, created without OTLP, to fill databases with millions.

They are in 40 groups (rollout, arm, cohort), evenly distributed in time; both arms of a prompt are
adjacent. Latencies are log-normal, with a different distribution per group.
"""

import os
from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.load.spans import COHORTS, ROLLOUTS, Spans
from collector.contract import Arm
from collector.ingest.preparation import prepare
from collector.otlp.body import Encoding
from collector.otlp.traces import decode_traces
from collector.store import SpanRows

_ARMS = tuple(Arm)
_START, _END = 5, 6
"""Indexes of both times in the row of a span."""


class Rows:
    """Creates rows, with equal numbers for equal seeds; ids are new each time."""

    def __init__(self, seed: int, *, first_start_unix_ns: int, ns_between_starts: int) -> None:
        self._random = np.random.default_rng(seed)
        self._first = first_start_unix_ns
        self._step = ns_between_starts
        (body,) = Spans(seed, first_start_unix_ns=first_start_unix_ns).bodies(1, 1)
        (self._like,) = prepare(decode_traces(body.content, Encoding.PROTOBUF).received)

    def chunks(self, rows: int, chunk: int) -> Iterator[tuple[SpanRows, ...]]:
        """Yield `rows` rows, at most `chunk` at a time."""
        for first in range(0, rows, chunk):
            yield self._chunk(first, min(chunk, rows - first))

    def _chunk(self, first: int, size: int) -> tuple[SpanRows, ...]:
        ids = os.urandom(24 * size)
        number = np.arange(first, first + size)
        pair, side = np.divmod(number, ROLLOUTS * 2)
        group = side * len(COHORTS) + pair % len(COHORTS)
        ttft = self._random.lognormal(-1.5 + group / 20, 0.5)
        tpot = self._random.lognormal(-4.5 + group / 40, 0.3)
        tokens = self._random.integers(16, 512, size)
        return tuple(
            self._row(n, ids[24 * i : 24 * i + 24], times)
            for i, (n, *times) in enumerate(
                zip(number.tolist(), ttft.tolist(), tpot.tolist(), tokens.tolist(), strict=True)
            )
        )

    def _row(self, number: int, ids: bytes, times: list[float]) -> SpanRows:
        ttft_s, tpot_s, tokens = times
        start = self._first + number * self._step
        end = start + int(1e9 * (ttft_s + tpot_s * (tokens - 1)))
        trace_id, span_id = ids[:16], ids[16:]
        pair, side = divmod(number, ROLLOUTS * 2)
        arm, rollout = divmod(side, ROLLOUTS)
        like = self._like
        assert like.generation is not None
        generation = like.generation | {
            "trace_id": trace_id,
            "span_id": span_id,
            "start_unix_ns": start,
            "end_unix_ns": end,
            "ttft_s": ttft_s,
            "tpot_s": tpot_s,
            "output_tokens": int(tokens),
            "rollout": rollout_name(rollout),
            "arm": _ARMS[arm].value,
            "cohort": COHORTS[pair % len(COHORTS)],
            "prompt_id": f"p{pair:08}",
            "repeat": 0,
        }
        span = (trace_id, span_id, *like.span[2:_START], start, end, *like.span[_END + 1 :])
        return like._replace(span=span, generation=generation)


def rollout_name(number: int) -> str:
    """Return the name of a rollout."""
    return f"rollout-{number}"


def groups() -> Iterator[tuple[str, Arm, str]]:
    """Yield every rollout, arm and cohort."""
    yield from product(map(rollout_name, range(ROLLOUTS)), _ARMS, COHORTS)
