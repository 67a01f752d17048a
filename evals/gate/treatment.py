"""Whether the candidate did what it is to be judged for: it speculated, and lost nothing by it."""

from collections.abc import Iterator

import numpy as np

from collector.contract import Reason
from evals.evidence import BoolColumn, Evidence, Side
from evals.gate.measured import Obstacle


def shortcomings(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield what keeps the candidate's answers from standing for the candidate."""
    yield from _impossible_counts(evidence)
    yield from _lossy(evidence)
    yield from _idle(evidence)


def _impossible_counts(evidence: Evidence) -> Iterator[Obstacle]:
    for side, arm in ((evidence.baseline, "baseline"), (evidence.candidate, "candidate")):
        count = int(_says(side, "impossible_counts", value=True).sum())
        if count:
            words = f"{count:,} of the {arm}'s answers accepted more draft tokens than were drafted"
            yield Obstacle(Reason.QUALITY, words)


def _lossy(evidence: Evidence) -> Iterator[Obstacle]:
    count = int(_says(evidence.candidate, "spec_lossless", value=False).sum())
    if count:
        words = (
            f"{count:,} of the candidate's answers were made with a lossy acceptance "
            "(`spec_decode.lossless` is false): that is another model's output"
        )
        yield Obstacle(Reason.TREATMENT, words)


def _idle(evidence: Evidence) -> Iterator[Obstacle]:
    """Look at all answers together: one by itself may have had nothing to draft."""
    candidate = evidence.candidate
    if "spec_method" not in candidate.told:
        return
    answered = candidate.answered & ~candidate.fallback
    counted = answered & (candidate.draft_tokens >= 0)
    if counted.any() and not candidate.draft_tokens[counted].any():
        words = f"the candidate drafted no token in {int(counted.sum()):,} answers"
        yield Obstacle(Reason.TREATMENT, words)
    elif answered.any() and not (candidate.speculated & answered).any():
        words = (
            "nothing says that the candidate speculated; send `spec_decode.method`, or its counts, "
            "with its answers"
        )
        yield Obstacle(Reason.TREATMENT, words)


def _says(side: Side, name: str, *, value: bool) -> BoolColumn:
    said = side.told.get(name)
    if said is None:
        return np.zeros(len(side.present), dtype=np.bool_)
    return np.asarray(said == value, dtype=np.bool_) & side.present
