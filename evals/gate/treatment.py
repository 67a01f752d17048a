"""Check that the candidate really speculated, and that its speculation is lossless."""

from collections.abc import Iterator

import numpy as np

from collector.contract import Reason, ReportedSpeculation
from collector.nouns import counted
from evals.evidence.columns import BoolColumn, Evidence, Side
from evals.evidence.drafting import AnswerDrafts
from evals.evidence.load_bands import load_band
from evals.gate.measured import MAX_UNBOUNDED_SHARE, Obstacle
from evals.policy import Policy

MAX_IDLE_SHARE = 0.02
"""A candidate with at most this share of answers with drafts is not known to speculate."""


def shortcomings(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield the obstacles to taking the answers as those of the candidate."""
    yield from _impossible_counts(evidence)
    yield from _more_than_the_answer(evidence)
    yield from _lossy(evidence)
    yield from _baseline_drafts_in_part(evidence.baseline)


def _impossible_counts(evidence: Evidence) -> Iterator[Obstacle]:
    for side, arm in evidence.arms:
        count = int(_records(side, "impossible_counts", value=True).sum())
        if count:
            words = (
                f"{count:,} of the {arm}'s answers accepted more draft tokens than were drafted, "
                "or fewer than none"
            )
            yield Obstacle(Reason.QUALITY, words, bars_fail=False)


def _more_than_the_answer(evidence: Evidence) -> Iterator[Obstacle]:
    """Yield an obstacle if answers accepted more tokens than they have, last step aside."""
    for side, arm in evidence.arms:
        known = side.answered & (side.draft_tokens >= 0) & (side.output_tokens > 0)
        step = np.ceil(side.draft_tokens / np.maximum(side.steps, 1))
        count = int((known & (side.accepted_tokens - step > side.output_tokens)).sum())
        if count:
            words = f"{count:,} of the {arm}'s answers accepted more draft tokens than they have"
            yield Obstacle(Reason.QUALITY, words, bars_fail=False)


def _lossy(evidence: Evidence) -> Iterator[Obstacle]:
    for side, arm in evidence.arms:
        count = int(_records(side, "spec_lossless", value=False).sum())
        if count:
            words = (
                f"{count:,} of the {arm}'s answers were made with a lossy acceptance "
                "(`spec_decode.lossless` is false): that is another model's output"
            )
            yield Obstacle(Reason.TREATMENT, words, bars_fail=False)


def _baseline_drafts_in_part(baseline: Side) -> Iterator[Obstacle]:
    """Yield an obstacle if a baseline speculates in some answers and says nothing in others."""
    answered = baseline.answered & ~baseline.fallback
    total, silent = int(answered.sum()), int((answered & ~baseline.speculated).sum())
    if min(silent, total - silent) > MAX_UNBOUNDED_SHARE * total:
        words = (
            f"{total - silent:,} of the baseline's {total:,} answers speculated and the others say "
            "nothing of speculation: it was not served in one configuration"
        )
        yield Obstacle(Reason.TREATMENT, words)


def idle(evidence: Evidence, policy: Policy) -> Obstacle | None:
    """Return the obstacle that the candidate is not known to have speculated, if so.

    All answers are taken together, since a single answer may have had nothing to draft. A method's
    name is only the sender's claim on its configuration; counts prove that tokens were drafted.
    """
    if not evidence.wants_drafts:
        return None
    words = idle_words(speculation_of(evidence.candidate), policy)
    return None if words is None else Obstacle(Reason.TREATMENT, words, bars_fail=False)


def speculation_of(candidate: Side) -> ReportedSpeculation:
    """Count a candidate's answers by what they record on speculation."""
    answered = candidate.answered & ~candidate.fallback
    both = answered & (candidate.accepted_tokens >= 0) & (candidate.draft_tokens > 0)
    return ReportedSpeculation(
        answered=int(answered.sum()),
        silent=int((answered & ~candidate.speculated).sum()),
        counted=int((answered & (candidate.draft_tokens >= 0)).sum()),
        drafted=int(drafted(candidate).sum()),
        judged=int(both.sum()),
        draft_tokens=int(candidate.draft_tokens[both].sum()),
        accepted_tokens=int(candidate.accepted_tokens[both].sum()),
    )


def idle_words(seen: ReportedSpeculation, policy: Policy) -> str | None:
    """Return why a candidate is not known to have speculated; `None` if it is known."""
    if seen.answered == 0:
        return None
    return _undrafted(seen, policy) or _mixed(seen)


def candidates_drafts(candidate: Side) -> list[AnswerDrafts]:
    """Return the drafts of each answer that counts them, with its load."""
    counted = candidate.answered & ~candidate.fallback & (candidate.draft_tokens >= 0)
    loads = candidate.column("concurrency")
    return [
        AnswerDrafts(load, int(candidate.draft_tokens[i]), max(int(candidate.steps[i]), 0) or None)
        for i in np.flatnonzero(counted)
        if (load := load_band(loads[i])) is not None
    ]


def drafted(candidate: Side) -> BoolColumn:
    """Return which answers' counts show a drafted token."""
    counts = (candidate.draft_tokens, candidate.accepted_tokens, candidate.steps)
    shown = np.any([one > 0 for one in counts], axis=0)
    return np.asarray(shown & candidate.answered & ~candidate.fallback)


def _undrafted(seen: ReportedSpeculation, policy: Policy) -> str | None:
    """Return a sentence if almost no answer has drafted tokens, or none was accepted."""
    if seen.drafted:
        if seen.drafted <= MAX_IDLE_SHARE * seen.answered:
            return f"the candidate drafted in only {seen.drafted:,} of {seen.answered:,} answers"
        return _none_accepted(seen, policy)
    if seen.counted:
        return f"the candidate drafted no token in {counted(seen.counted, 'answer')}"
    if policy.validity.speculation == "optional":
        return None
    names_method = seen.silent < seen.answered
    reason = (
        "it names a method and counts nothing" if names_method else "its answers say nothing of it"
    )
    return (
        f"no count shows that the candidate drafted a token ({reason}); send "
        "`spec_decode.num_draft_tokens` and its like, or set `validity.speculation: optional` if "
        "the change is another one, or the engine gives no counts"
    )


def _none_accepted(seen: ReportedSpeculation, policy: Policy) -> str | None:
    """Return a sentence if no draft was accepted: any gain then has another cause."""
    if seen.judged == 0 and policy.validity.speculation == "required":
        return (
            "no count shows that a draft token was accepted; send "
            "`spec_decode.num_accepted_tokens`, or set `validity.speculation: optional` if the "
            "engine gives no counts"
        )
    if seen.draft_tokens == 0 or seen.accepted_tokens > 0:
        return None
    return f"none of the candidate's {seen.draft_tokens:,} draft tokens was accepted"


def _mixed(seen: ReportedSpeculation) -> str | None:
    """Return a sentence if a part of the answers records nothing on speculation."""
    if seen.silent == seen.answered or seen.silent <= MAX_UNBOUNDED_SHARE * seen.answered:
        return None
    return (
        f"{seen.silent:,} of the candidate's {seen.answered:,} answers say nothing of speculation, "
        "which others do: they may have been made without it"
    )


def _records(side: Side, name: str, *, value: bool) -> BoolColumn:
    values = side.recorded.get(name)
    if values is None:
        return np.zeros(len(side.present), dtype=np.bool_)
    return np.asarray(values == value, dtype=np.bool_) & side.present
