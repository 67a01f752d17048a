"""How long the parts of a step took: by the GPU's own events, or by the process's clock."""

import time
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch

from collector.contract import StepTimes

Mark = float | torch.cuda.Event
"""A moment: a reading of `time.perf_counter`, or an event in the order of the GPU's work."""


def mark(device: torch.device) -> Mark:
    """Return this moment on the device."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def seconds(earlier: Mark, later: Mark) -> float:
    """Return the time between two moments of one device; waits until the later has passed."""
    if isinstance(earlier, float) and isinstance(later, float):
        return later - earlier
    if isinstance(earlier, float) or isinstance(later, float):
        raise TypeError("wanted two moments of the same device")
    later.synchronize()
    return float(earlier.elapsed_time(later)) / 1000


class StepMarks(NamedTuple):
    """The moments of a step."""

    begun: Mark
    drafted: Mark
    verified: Mark
    ended: Mark

    @property
    def draft_s(self) -> float:
        """Time to propose."""
        return seconds(self.begun, self.drafted)

    @property
    def verify_s(self) -> float:
        """Time of the target's pass, and of judging by it."""
        return seconds(self.drafted, self.verified)

    @property
    def overhead_s(self) -> float:
        """The rest: reading the result, ends and stop strings, keeping the books."""
        return seconds(self.verified, self.ended)


def running_totals(steps: Sequence[StepMarks]) -> list[StepTimes]:
    """Return the times of the first step, of the first two, and so on; waits for the device."""
    sums = [
        accumulate(step.draft_s for step in steps),
        accumulate(step.verify_s for step in steps),
        accumulate(step.overhead_s for step in steps),
    ]
    return [
        StepTimes(draft_s=draft_s, verify_s=verify_s, overhead_s=overhead_s)
        for draft_s, verify_s, overhead_s in zip(*sums, strict=True)
    ]
