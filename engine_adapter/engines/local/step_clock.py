"""How long the parts of a step took: by the GPU's own events, or by the process's clock."""

import time
from typing import NamedTuple

import torch

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
