"""Signs of a broken candidate that no cell of the policy may cover."""

from collections.abc import Iterator

import numpy as np

from collector.contract import Change, acceptance_collapsed
from evals.evidence.columns import BoolColumn, Evidence, Side
from evals.gate.sampled_cells import sampled

_MISCOUNTED = 0.05
"""Share of equal answers whose counts may differ: text can be cut into tokens in several ways."""


def suspicions(evidence: Evidence) -> tuple[str, ...]:
    """Return sentences on what looks broken: where acceptance collapsed, and wrong counts."""
    return (*_collapses(evidence), *_miscounts(evidence))


def _collapses(evidence: Evidence) -> tuple[str, ...]:
    side = evidence.candidate
    counted = side.speculated & side.answered & side.counts_usable & ~side.fallback
    if _collapsed(side, counted):
        return (f"acceptance collapsed: {_words(side, counted)} draft tokens were accepted",)
    return tuple(
        f"acceptance collapsed {where}: {_words(side, counted & rows)} draft tokens were accepted, "
        f"{_words(side, counted & ~rows)} elsewhere"
        for where, rows in _parts(evidence)
        if _collapsed(side, counted & rows)
    )


def _miscounts(evidence: Evidence) -> Iterator[str]:
    """Yield a sentence if greedy answers that equal the baseline's are counted otherwise."""
    found = evidence.divergences
    if found is None or evidence.change not in (None, Change.SPECULATION):
        return
    theirs, ours = evidence.baseline.output_tokens, evidence.candidate.output_tokens
    equal = (found.compared >= 0) & (found.position < 0) & np.isfinite(theirs) & np.isfinite(ours)
    wrong = int((theirs != ours)[equal].sum())
    if wrong > _MISCOUNTED * int(equal.sum()):
        yield (
            f"output tokens are miscounted: {wrong:,} of {int(equal.sum()):,} greedy answers equal "
            f"the baseline's and have another count, {ours[equal].sum():,.0f} tokens where the "
            f"baseline counts {theirs[equal].sum():,.0f}"
        )


def _parts(evidence: Evidence) -> Iterator[tuple[str, BoolColumn]]:
    yield "in sampled answers", sampled(evidence.candidate)
    for cohort in evidence.all_cohorts:
        yield f"in `{cohort}`", evidence.scope(cohort)


def _collapsed(side: Side, rows: BoolColumn) -> bool:
    return acceptance_collapsed(*_sums(side, rows))


def _sums(side: Side, rows: BoolColumn) -> tuple[int, int]:
    known = rows & (side.draft_tokens >= 0) & (side.accepted_tokens >= 0)
    return int(np.sum(side.accepted_tokens[known])), int(np.sum(side.draft_tokens[known]))


def _words(side: Side, rows: BoolColumn) -> str:
    accepted, drafted = _sums(side, rows)
    return f"{accepted / drafted:.1%} of {drafted:,}"
