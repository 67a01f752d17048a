"""Convert the policy's longest stretch of harm to requests, while traffic flows."""

from collections.abc import Mapping

import numpy as np

from collector.contract import Watch
from evals.evidence.columns import Counts
from evals.policy import Policy

_PARTS = 10
"""Number of parts of the policy's time in which starts are counted."""


def starts_by_part(watch: Watch, started: Counts, policy: Policy) -> Mapping[str, int]:
    """Count the newest starts by tenths of the policy's time; {} if the policy has no time.

    Late starts are added to their own part, unless it is older than the policy's time.
    """
    seconds = policy.dependence.stretch_s
    if seconds is None:
        return {}
    parts, counts = np.unique(started // _part_ns(seconds), return_counts=True)
    found = dict(watch.recent_starts)
    for part, count in zip(parts.tolist(), counts.tolist(), strict=True):
        found[str(part)] = found.get(str(part), 0) + count
    newest = max((int(part) for part in found), default=0)
    return {part: n for part, n in sorted(found.items()) if int(part) >= newest - 2 * _PARTS}


def longest(watch: Watch, by_part: Mapping[str, int], policy: Policy, turns: int) -> float:
    """Return the stretch in requests: at least the most turns of a session.

    For a time, it is the most requests that ever started within it.
    """
    if policy.dependence.stretch_s is None:
        return max(watch.stretch, policy.dependence.stretch, turns)
    sums = (sum(by_part.get(str(int(part) + i), 0) for i in range(_PARTS + 1)) for part in by_part)
    return max(watch.stretch, *sums, turns)


def _part_ns(seconds: float) -> int:
    return max(1, int(seconds * 1e9 / _PARTS))
