"""Whether greedy answers are the baseline's: the cell of a policy with a section `lossless`."""

from typing import NamedTuple

import numpy as np

from collector.contract import Finding, Outcome, Reason, Role
from evals.evidence import Divergences, Evidence, FloatColumn
from evals.policy import Policy
from evals.policy_sections import Lossless
from evals.significant import significant
from evals.stats import Insufficient, Interval
from evals.stats.hazard_ratio import METHOD, hazard_ratio

METRIC, STAT = "greedy_divergence", "hazard_ratio"
MIN_PAIRS = 30
"""Compared answers below which nothing is said of them all."""


class _Judged(NamedTuple):
    outcome: Outcome
    reason: Reason | None
    words: str
    interval: Interval | None = None
    needed: int | None = None


def lossless_findings(
    evidence: Evidence, control: Evidence | None, policy: Policy
) -> tuple[Finding, ...]:
    """Return the finding on greedy answers; none where the policy does not ask for it.

    A divergence that the baseline's own logits do not call a tie is a fail by itself. Where all
    are ties, or none is there, it passes; where nobody rescored them, their rate a token is held
    against that of the A/A control, at the policy's level for losslessness.
    """
    rules = policy.lossless
    if rules is None:
        return ()
    found = evidence.divergences
    n = 0 if found is None else int((found.compared >= 0).sum())
    judged = _judge(found, n, None if control is None else control.divergences, rules)
    interval = judged.interval
    return (
        Finding(
            metric=METRIC,
            stat=STAT,
            cohort=None,
            role=Role.PROVE,
            outcome=judged.outcome,
            reason=judged.reason,
            bound="max",
            margin=rules.hazard_ratio_max,
            unit="ratio",
            confidence=1 - rules.alpha,
            n=n,
            n_needed=judged.needed,
            estimate=None if interval is None else significant(interval.estimate),
            lower=None if interval is None else significant(interval.lower),
            upper=None if interval is None else significant(interval.upper),
            p_fail=None if interval is None else significant(interval.p_fail, 6),
            method=METHOD,
            message=f"greedy answers, pooled: {_matches(found, n)}{judged.words}",
        ),
    )


def _judge(
    found: Divergences | None, n: int, control: Divergences | None, rules: Lossless
) -> _Judged:
    if found is None or n == 0:
        words = "no pair of greedy answers has a text on both sides: inconclusive"
        return _Judged(Outcome.INCONCLUSIVE, Reason.MISSING, words, needed=MIN_PAIRS)
    diverged = found.position >= 0
    broken = diverged & (found.gap > _allowed(found, rules))
    if broken.any():
        first = int(np.flatnonzero(broken)[0])
        words = f"{int(broken.sum())} are no ties, such as {found.words[first]}: fail"
        return _Judged(Outcome.FAIL, None, words)
    if n < MIN_PAIRS:
        words = f"{_ties(found)}needs {MIN_PAIRS - n} more pairs: inconclusive"
        return _Judged(Outcome.INCONCLUSIVE, Reason.TOO_FEW, words, needed=MIN_PAIRS - n)
    if not diverged.any() or not np.isnan(found.gap[diverged]).any():
        return _Judged(Outcome.PASS, None, f"{_ties(found)}pass")
    return _against(found, control, rules)


def _ties(found: Divergences) -> str:
    """Name the divergences, none of which the baseline's logits forbid, and the first of them."""
    rows = np.flatnonzero(found.position >= 0)
    if len(rows) == 0:
        return ""
    such = f"such as {found.words[int(rows[0])]}"
    if np.isnan(found.gap[rows]).any():
        return f"{len(rows)} {'differs' if len(rows) == 1 else 'differ'}, {such}: "
    if len(rows) == 1:
        return f"1 is a tie under the baseline, {such}: "
    return f"{len(rows)} are all ties under the baseline, {such}: "


def _against(found: Divergences, control: Divergences | None, rules: Lossless) -> _Judged:
    """Hold the rate of divergences against that of two equal arms."""
    first = found.words[int(np.flatnonzero(found.position >= 0)[0])]
    if control is None or not (control.compared >= 0).any():
        words = (
            f"first {first}; without an A/A control, or `--rescore`, nobody knows whether equal "
            "arms diverge as often: inconclusive"
        )
        return _Judged(Outcome.INCONCLUSIVE, Reason.AA, words)
    interval = hazard_ratio(
        _rate(found),
        _rate(control),
        margin=rules.hazard_ratio_max,
        bound="max",
        confidence=1 - rules.alpha,
    )
    if isinstance(interval, Insufficient):
        return _Judged(Outcome.INCONCLUSIVE, Reason.TOO_FEW, f"{interval.reason}: inconclusive")
    upper = "no upper limit" if interval.upper is None else f"{interval.upper:.2f}"
    words = f"rate a token over the control's: up to {upper}, margin ≤ {rules.hazard_ratio_max:g}: "
    if interval.p_fail <= rules.alpha:
        return _Judged(Outcome.FAIL, None, f"{words}fail; first {first}", interval)
    if interval.upper is not None and interval.upper <= rules.hazard_ratio_max:
        return _Judged(Outcome.PASS, None, f"{words}pass", interval)
    return _Judged(Outcome.INCONCLUSIVE, Reason.TOO_FEW, f"{words}too few to decide", interval)


def _allowed(found: Divergences, rules: Lossless) -> FloatColumn:
    if rules.max_tie_gap is None:
        return found.allowed
    return np.full(len(found.gap), rules.max_tie_gap)


def _rate(found: Divergences) -> tuple[int, float]:
    compared = found.compared[found.compared >= 0]
    return int((found.position >= 0).sum()), float(compared.sum())


def _matches(found: Divergences | None, n: int) -> str:
    if found is None or n == 0:
        return ""
    same = n - int((found.position >= 0).sum())
    return f"{same:,} of {n:,} are the same ({same / n:.1%}), "
