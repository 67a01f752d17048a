"""Time the parts of a step, by CUDA events on a GPU, else by the process's clock."""

import time
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch

from collector.contract import StepTimes

Mark = float | torch.cuda.Event
"""A point in time: a reading of `time.perf_counter`, or a CUDA event on the current stream."""


def mark(device: torch.device) -> Mark:
    """Return the current point in time on the device."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def seconds(earlier: Mark, later: Mark) -> float:
    """Return the time between two marks of one device; waits until the later has passed."""
    if isinstance(earlier, float) and isinstance(later, float):
        return later - earlier
    if isinstance(earlier, float) or isinstance(later, float):
        raise TypeError("wanted two moments of the same device")
    later.synchronize()
    return float(earlier.elapsed_time(later)) / 1000


class StepMarks(NamedTuple):
    """The marks of one step."""

    begun: Mark
    drafted: Mark
    verified: Mark
    ended: Mark

    @property
    def draft_s(self) -> float:
        """Time of drafting."""
        return seconds(self.begun, self.drafted)

    @property
    def verify_s(self) -> float:
        """Time of the target's pass and of verifying the draft tokens by it."""
        return seconds(self.drafted, self.verified)

    @property
    def overhead_s(self) -> float:
        """The rest: copying the result to the host, end and stop-string checks, bookkeeping."""
        return seconds(self.verified, self.ended)


def running_totals(steps: Sequence[StepMarks]) -> list[StepTimes]:
    """Return the cumulative times after each step; waits for the device."""
    sums = [
        accumulate(step.draft_s for step in steps),
        accumulate(step.verify_s for step in steps),
        accumulate(step.overhead_s for step in steps),
    ]
    return [
        StepTimes(draft_s=draft_s, verify_s=verify_s, overhead_s=overhead_s)
        for draft_s, verify_s, overhead_s in zip(*sums, strict=True)
    ]
