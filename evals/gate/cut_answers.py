"""Detect a candidate that cuts its answers short: they have fewer tokens far more often."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import binomtest, mannwhitneyu

from collector.contract import Reason
from evals.evidence.columns import Evidence, FloatColumn, Side
from evals.gate.likeness import is_known
from evals.gate.measured import MAX_UNBOUNDED_SHARE, Obstacle
from evals.policy import Policy

_SHORT = 0.8
"""An answer with less than this share of the other answer's tokens is short."""
_LOPSIDED = 0.75
"""The candidate cuts answers if at least this share of the short answers is its own, or if one of
its answers in split traffic has fewer tokens with at least this probability."""

_ADVICE = "bound `output_tokens` by a `min` in the policy if that is meant"


def cut_answers(evidence: Evidence, policy: Policy) -> Iterator[Obstacle]:
    """Yield an obstacle if the candidate cuts its answers short and no rule bounds that.

    A lossless candidate writes the same answers as the baseline. Sampled answers differ in length,
    but in both directions: a sign test, at the level of the sample ratio test.
    """
    if bounded_by(policy):
        return
    compare = _in_pairs if policy.paired else _in_arms
    words = compare(evidence, policy)
    if words is not None:
        yield Obstacle(Reason.MISMATCH, words, bars_fail=False)


def uncounted_on_one_side(evidence: Evidence, policy: Policy) -> Iterator[Obstacle]:
    """Yield an obstacle for token counts that only one side gives: they could hide a cut.

    If neither side gives them, the cells that need them report it.
    """
    if not policy.paired:
        return
    sides = evidence.baseline, evidence.candidate
    rows = np.logical_and(*(side.answered & ~side.fallback for side in sides))
    input_known = [is_known(side.column("input_tokens")) for side in sides]
    output_known = [~np.isnan(side.output_tokens) for side in sides]
    for words, (b, c) in (("input", input_known), ("output", output_known)):
        alone = int((rows & (b != c)).sum())
        if alone > MAX_UNBOUNDED_SHARE * int(rows.sum()):
            message = (
                f"{alone:,} of {int(rows.sum()):,} pairs give {words} tokens on one side alone"
            )
            yield Obstacle(Reason.MISSING, message, bars_fail=False)


def bounded_by(policy: Policy) -> bool:
    """Return whether a rule of the policy bounds how short answers may be."""
    return any(rule.metric == "output_tokens" and rule.bound == "min" for rule in policy.rules)


def shorter(evidence: Evidence) -> tuple[int, int]:
    """Return the numbers of pairs in which the candidate's, and the baseline's, answer is short."""
    candidate, baseline = _tokens(evidence.candidate), _tokens(evidence.baseline)
    below = candidate < _SHORT * baseline, baseline < _SHORT * candidate
    return int(below[0].sum()), int(below[1].sum())


def cut_words(short: int, other: int, pairs: int, policy: Policy) -> str | None:
    """Describe that the candidate cuts answers short; `None` if it may be chance."""
    if not _lopsided(short, other, policy):
        return None
    return (
        f"the candidate's answer has less than {_SHORT:.0%} of the baseline's tokens in {short:,} "
        f"of {pairs:,} pairs, the baseline's less than that of the candidate's in {other:,}; "
        f"{_ADVICE}"
    )


def _tokens(side: Side) -> FloatColumn:
    """Return the tokens of answers that did not fail; NaN if not counted."""
    known = side.answered & ~side.fallback & (side.output_tokens > 0)
    return np.where(known, side.output_tokens, np.nan)


def _in_pairs(evidence: Evidence, policy: Policy) -> str | None:
    return cut_words(*shorter(evidence), int(evidence.complete.sum()), policy)


def _lopsided(short: int, other: int, policy: Policy) -> bool:
    if short < _LOPSIDED * (short + other) or short == 0:
        return False
    p = float(binomtest(short, short + other, alternative="greater").pvalue)
    return p < policy.validity.srm_p_min


def _in_arms(evidence: Evidence, policy: Policy) -> str | None:
    tokens = _tokens(evidence.candidate), _tokens(evidence.baseline)
    arms = [arm[~np.isnan(arm)] for arm in tokens]
    if min(len(arm) for arm in arms) == 0:
        return None
    found = mannwhitneyu(arms[0], arms[1], alternative="less")
    fewer = 1 - float(found.statistic) / (len(arms[0]) * len(arms[1]))
    if fewer < _LOPSIDED or found.pvalue >= policy.validity.srm_p_min:
        return None
    words = f"a candidate's answer has fewer tokens than a baseline's in {fewer:.0%} of all cases"
    return f"{words}; {_ADVICE}"
