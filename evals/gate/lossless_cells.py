"""The cell of a lossless policy that checks whether greedy answers equal the baseline's."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from collector.contract import Finding, Outcome, Reason
from evals.evidence.columns import Divergences, Evidence, FloatColumn
from evals.gate.lossless_finding import LosslessComparison, lossless_finding, lost_pairs
from evals.gate.sampled_cells import is_sampled
from evals.gate.sentinel_cells import state_obstacles
from evals.policy import Policy
from evals.policy.sections import Lossless
from evals.stats import Insufficient, Interval
from evals.stats.hazard_ratio import METHOD, hazard_ratio

METRIC, STAT = "greedy_divergence", "hazard_ratio"
MIN_PAIRS = 30
"""Minimum number of compared answers for a decision."""


class _LosslessOutcome(NamedTuple):
    outcome: Outcome
    reason: Reason | None
    words: str
    interval: Interval | None = None
    needed: int | None = None


def lossless_findings(
    evidence: Evidence, control: Evidence | None, policy: Policy
) -> tuple[Finding, ...]:
    """Return the finding on greedy answers; none if the policy asks for none, or all were sampled.

    Fails if the baseline's own logits show a divergence that is no tie. Passes if there are no
    divergences, or all are ties. If the divergences were not rescored, their rate per character is
    compared with that of the A/A control, at the policy's level for losslessness. Answers that
    could not be compared count as divergences that are no ties, or, for a rate, at the beginning.
    """
    rules = policy.lossless
    if rules is None or (len(evidence) and is_sampled(evidence).all()):
        return ()
    found = evidence.divergences
    n = 0 if found is None else int((found.compared >= 0).sum())
    judged = _judge(found, n, None if control is None else control.divergences, rules)
    barred = lost_pairs(evidence, evidence.scope(None), policy)
    unfit = next((o for o in state_obstacles(evidence.sentinels, policy) if o.bars_fail), None)
    if unfit is not None:
        judged = _LosslessOutcome(
            Outcome.INCONCLUSIVE, unfit.reason, f"{unfit.words}: inconclusive"
        )
    if barred is not None and judged.outcome is Outcome.PASS:
        judged = _LosslessOutcome(
            Outcome.INCONCLUSIVE, barred.reason, f"{barred.words}: inconclusive"
        )
    return (
        lossless_finding(
            LosslessComparison(METRIC, STAT, rules.hazard_ratio_max, rules.alpha, METHOD),
            judged.outcome,
            judged.reason,
            f"greedy answers, pooled: {_matches(found, n)}{judged.words}",
            n=n,
            needed=judged.needed,
            interval=judged.interval,
            p_fail=None if judged.interval is None else judged.interval.p_fail,
        ),
    )


def _judge(
    found: Divergences | None, n: int, control: Divergences | None, rules: Lossless
) -> _LosslessOutcome:
    if found is None or n == 0:
        why = "" if found is None or not _unknown(found) else f" ({_unknown_words(found)})"
        words = f"no pair of greedy answers has a text on both sides{why}: inconclusive"
        return _LosslessOutcome(Outcome.INCONCLUSIVE, Reason.MISSING, words, needed=MIN_PAIRS)
    diverged = found.position >= 0
    broken = diverged & (found.gap > _allowed(found, rules))
    if broken.any():
        first = int(np.flatnonzero(broken)[0])
        words = f"{int(broken.sum())} are no ties, such as {found.words[first]}: fail"
        return _LosslessOutcome(Outcome.FAIL, None, words)
    if n < MIN_PAIRS:
        words = f"{_ties(found)}needs {MIN_PAIRS - n} more pairs: inconclusive"
        return _LosslessOutcome(Outcome.INCONCLUSIVE, Reason.TOO_FEW, words, needed=MIN_PAIRS - n)
    if not diverged.any() or not np.isnan(found.gap[diverged]).any():
        if _unknown(found):
            words = f"{_ties(found)}{_unknown_words(found)}; at worst they differ: inconclusive"
            return _LosslessOutcome(Outcome.INCONCLUSIVE, Reason.MISSING, words)
        return _LosslessOutcome(Outcome.PASS, None, f"{_ties(found)}pass")
    return _against(found, control, rules)


def _ties(found: Divergences) -> str:
    """Describe the divergences, all of which are ties, with the first of them."""
    rows = np.flatnonzero(found.position >= 0)
    if len(rows) == 0:
        return ""
    such = f"such as {found.words[int(rows[0])]}"
    if np.isnan(found.gap[rows]).any():
        return f"{len(rows)} {'differs' if len(rows) == 1 else 'differ'}, {such}: "
    if len(rows) == 1:
        return f"1 is a tie under the baseline, {such}: "
    return f"{len(rows)} are all ties under the baseline, {such}: "


def _against(found: Divergences, control: Divergences | None, rules: Lossless) -> _LosslessOutcome:
    """Compare the rate of divergences with that of two equal arms."""
    first = found.words[int(np.flatnonzero(found.position >= 0)[0])]
    if control is None or not (control.compared >= 0).any():
        words = (
            f"first {first}; without an A/A control, or `--rescore`, nobody knows whether equal "
            "arms diverge as often: inconclusive"
        )
        return _LosslessOutcome(Outcome.INCONCLUSIVE, Reason.AA, words)
    interval = _hazard_ratio(_rate(found), _rate(control), rules)
    worst = _hazard_ratio(_rate(found, worst=True), _rate(control, worst=False), rules)
    if isinstance(interval, Insufficient) or isinstance(worst, Insufficient):
        words = "too little was compared for limits: inconclusive"
        return _LosslessOutcome(Outcome.INCONCLUSIVE, Reason.TOO_FEW, words)
    upper = "no upper limit" if interval.upper is None else f"{interval.upper:.2f}"
    words = f"rate over the control's: up to {upper}, margin ≤ {rules.hazard_ratio_max:g}: "
    if interval.p_fail <= rules.alpha:
        return _LosslessOutcome(Outcome.FAIL, None, f"{words}fail; first {first}", interval)
    if not _within(interval, rules):
        return _LosslessOutcome(
            Outcome.INCONCLUSIVE, Reason.TOO_FEW, f"{words}too few to decide", interval
        )
    if not _within(worst, rules):
        words += f"inconclusive: {_unknown_words(found, control)}; at worst they exceed it"
        return _LosslessOutcome(Outcome.INCONCLUSIVE, Reason.MISSING, words, interval)
    return _LosslessOutcome(Outcome.PASS, None, f"{words}pass", interval)


def _hazard_ratio(
    found: tuple[int, float], control: tuple[int, float], rules: Lossless
) -> Interval | Insufficient:
    margin, confidence = rules.hazard_ratio_max, 1 - rules.alpha
    return hazard_ratio(found, control, margin=margin, bound="max", confidence=confidence)


def _within(interval: Interval, rules: Lossless) -> bool:
    return interval.upper is not None and interval.upper <= rules.hazard_ratio_max


def _allowed(found: Divergences, rules: Lossless) -> FloatColumn:
    if rules.max_tie_gap is None:
        return found.allowed
    return np.full(len(found.gap), rules.max_tie_gap)


def _rate(found: Divergences, *, worst: bool | None = None) -> tuple[int, float]:
    """Return divergences and length compared; `worst` adds the rest, at worst or at best."""
    tokens, unknown = found.compared[found.compared >= 0], _unknown(found)
    diverged, compared = int((found.position >= 0).sum()), float(tokens.sum())
    if worst is None:
        return diverged, compared
    return (
        (diverged + unknown, compared) if worst else (diverged, compared + unknown * tokens.mean())
    )


def _unknown(found: Divergences) -> int:
    return int((found.unknown != None).sum())  # noqa: E711  # elementwise


def _unknown_words(*arms: Divergences) -> str:
    """Return how many answers were not compared, and why."""
    why = Counter(reason for one in arms for reason in one.unknown if reason is not None)
    counts = ", ".join(f"{count:,} {reason}" for reason, count in why.most_common())
    return f"of the pairs that may be greedy {counts}"


def _matches(found: Divergences | None, n: int) -> str:
    if found is None or n == 0:
        return ""
    same = n - int((found.position >= 0).sum())
    return f"{same:,} of {n:,} are the same ({same / n:.1%}), "
