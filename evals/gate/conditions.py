"""Check that both arms were timed under like conditions: load, and what caches already held."""

from collections.abc import Iterator

import numpy as np

from collector.contract import Change, Reason
from evals.evidence.columns import Evidence, Side
from evals.gate.invented_times import FEWEST
from evals.gate.measured import Obstacle

MAX_LOAD_RATIO = 4.0
"""A faster arm has fewer requests in flight, but not so many fewer."""
_MAX_CACHED_APART = 0.1
"""Maximum difference of the arms' shares of input tokens read from a cache."""


def unlike_conditions(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield an obstacle for times if the arms' load, or their caches' hits, are far apart."""
    loads = {arm: _median_load(side) for side, arm in evidence.arms}
    if max(loads.values()) > MAX_LOAD_RATIO * min(loads.values()):
        words = " and ".join(f"{load:g} for the {arm}" for arm, load in loads.items())
        yield Obstacle(
            Reason.MISMATCH, f"the arms ran under other load: in flight {words} (median)"
        )
    shares = {arm: _cached_share(side) for side, arm in evidence.arms}
    apart = abs(shares["baseline"] - shares["candidate"]) > _MAX_CACHED_APART
    if apart and evidence.change in (None, Change.SPECULATION, Change.DRAFT_SWAP):
        words = " and ".join(f"{share:.0%} of the {arm}'s" for arm, share in shares.items())
        message = f"caches held {words} input tokens; turn prefix caching off, or salt it"
        yield Obstacle(Reason.MISMATCH, message)


def _median_load(side: Side) -> float:
    known = side.numbers("concurrency")[side.present]
    known = known[np.isfinite(known)]
    return float(np.median(known)) if len(known) >= FEWEST else np.nan


def _cached_share(side: Side) -> float:
    cached, read = side.numbers("cached_input_tokens"), side.numbers("input_tokens")
    known = side.present & np.isfinite(cached) & (read > 0)
    return float(cached[known].sum() / read[known].sum()) if known.sum() >= FEWEST else np.nan
