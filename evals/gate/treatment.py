"""Whether the candidate did what it is to be judged for: it speculated, and lost nothing by it."""

from collections.abc import Iterator

import numpy as np

from collector.contract import Reason
from evals.evidence import BoolColumn, Evidence, Side
from evals.gate.measured import MAX_UNBOUNDED_SHARE, Obstacle
from evals.policy import Policy


def shortcomings(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield what keeps the candidate's answers from standing for the candidate."""
    yield from _impossible_counts(evidence)
    yield from _lossy(evidence)


def _impossible_counts(evidence: Evidence) -> Iterator[Obstacle]:
    for side, arm in ((evidence.baseline, "baseline"), (evidence.candidate, "candidate")):
        count = int(_says(side, "impossible_counts", value=True).sum())
        if count:
            words = f"{count:,} of the {arm}'s answers accepted more draft tokens than were drafted"
            yield Obstacle(Reason.QUALITY, words, bars_fail=False)


def _lossy(evidence: Evidence) -> Iterator[Obstacle]:
    count = int(_says(evidence.candidate, "spec_lossless", value=False).sum())
    if count:
        words = (
            f"{count:,} of the candidate's answers were made with a lossy acceptance "
            "(`spec_decode.lossless` is false): that is another model's output"
        )
        yield Obstacle(Reason.TREATMENT, words, bars_fail=False)


def idle(evidence: Evidence, policy: Policy) -> Obstacle | None:
    """Return why the candidate is not known to have speculated.

    All answers are looked at together: one by itself may have had nothing to draft. Who tells the
    configuration that served an answer, by its fingerprint, tells its speculation too, unless the
    policy has `validity.speculation: optional`; of others nothing is known.
    """
    candidate = evidence.candidate
    answered = candidate.answered & ~candidate.fallback
    said = answered & candidate.speculated
    counted = answered & (candidate.draft_tokens >= 0)
    if "spec_method" not in candidate.told or not answered.any():
        return None
    if counted.any() and not candidate.draft_tokens[counted].any():
        words = f"the candidate drafted no token in {int(counted.sum()):,} answers"
        return Obstacle(Reason.TREATMENT, words, bars_fail=False)
    configured = candidate.told.get("fingerprint")
    tells = configured is not None and any(name is not None for name in configured[answered])
    if not said.any() and tells and policy.validity.speculation == "required":
        words = (
            "nothing says that the candidate speculated; send `spec_decode.method`, or its counts, "
            "with its answers, or set `validity.speculation: optional`"
        )
        return Obstacle(Reason.TREATMENT, words, bars_fail=False)
    silent = int((answered & ~said).sum())
    if said.any() and silent > MAX_UNBOUNDED_SHARE * int(answered.sum()):
        words = (
            f"{silent:,} of the candidate's {int(answered.sum()):,} answers say nothing of "
            "speculation, which others do: they may have been made without it"
        )
        return Obstacle(Reason.TREATMENT, words, bars_fail=False)
    return None


def _says(side: Side, name: str, *, value: bool) -> BoolColumn:
    said = side.told.get(name)
    if said is None:
        return np.zeros(len(side.present), dtype=np.bool_)
    return np.asarray(said == value, dtype=np.bool_) & side.present
