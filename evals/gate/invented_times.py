"""Check that each time was measured by itself, by a clock fine enough, and not made of others."""

from collections.abc import Iterator

import numpy as np

from collector.contract import LATENCIES, Reason
from evals.evidence.columns import Evidence, FloatColumn, Side
from evals.gate.measured import Obstacle
from evals.policy.rules import METRICS

FEWEST = 20
"""With fewer answers than this, some may be equal by chance."""
ALIKE_SHARE = 0.1
"""Maximum share of equal values that a fine clock gives, and of values made of others."""
_COARSE_ALIKE_SHARE = 0.5
"""Maximum share of equal values that a coarse clock gives."""
_FINE, _COARSE = 1e-4, 0.1
"""A clock is fine if its steps are at most this part of the median time, coarse beyond that one."""
_SAME = 1e-4
"""Relative difference up to which a time is the one computed from others."""


def implausible(evidence: Evidence) -> Iterator[tuple[str, Obstacle]]:
    """Yield a latency metric and its obstacle if it hardly varies, or was computed from others."""
    for metric in LATENCIES:
        for side, arm in evidence.arms:
            words = _unresolved_words(_known(side.latency_s(metric)))
            if words is not None:
                message = f"the {arm}'s {METRICS[metric].words} {words}"
                yield metric, Obstacle(Reason.QUALITY, message)
        words = _words_of_the_other_arm(evidence, metric)
        if words is not None:
            yield metric, Obstacle(Reason.MISMATCH, words)
    for side, arm in evidence.arms:
        words = _words_of_durations(side, arm)
        if words is not None:
            yield "tpot", Obstacle(Reason.QUALITY, words, bars_fail=False)


def _unresolved_words(values: FloatColumn) -> str | None:
    if len(values) < FEWEST:
        return None
    distinct, counts = np.unique(values, return_counts=True)
    step, most = _step(values), int(counts.max())
    if most > (ALIKE_SHARE if step <= _FINE else _COARSE_ALIKE_SHARE) * len(values):
        value = float(distinct[counts.argmax()])
        return (
            f"is the same {value:.4g} s in {most:,} of {len(values):,} answers: not a measurement"
        )
    if step > _COARSE:
        return f"has steps of {step:.0%} of its median: the clock is too coarse"
    return None


def _step(values: FloatColumn) -> float:
    """Return the smallest difference of two values, as a part of the median."""
    steps = np.diff(np.unique(values))
    return float(steps.min() / np.median(values)) if len(steps) else np.inf


def _words_of_durations(side: Side, arm: str) -> str | None:
    """Return a sentence if times per output token include the time to first token."""
    tpot_s, e2e_s = side.latency_s("tpot"), side.latency_s("e2e")
    known = np.isfinite(tpot_s) & np.isfinite(e2e_s) & (side.output_tokens > 1)
    share = tpot_s[known] * side.output_tokens[known] / e2e_s[known]
    count = int((np.abs(share - 1) < _SAME).sum())
    if len(share) < FEWEST or count <= ALIKE_SHARE * len(share):
        return None
    return (
        f"{count:,} of the {arm}'s {len(share):,} times per output token are the duration divided "
        "by the tokens; send (end − first token) ÷ (output tokens − 1)"
    )


def _words_of_the_other_arm(evidence: Evidence, metric: str) -> str | None:
    """Return a sentence if one arm's times are the other's, in a fixed ratio or distance."""
    both = np.column_stack([side.latency_s(metric) for side, _ in evidence.arms])
    baseline, candidate = np.round(both[np.isfinite(both).all(axis=1)], 9).T
    if len(baseline) < FEWEST or max(_step(baseline), _step(candidate)) > _FINE:
        return None
    for what, made in (
        ("ratio", np.round(candidate / baseline, 6)),
        ("distance", np.round(candidate - baseline, 9)),
    ):
        most = int(np.unique(made, return_counts=True)[1].max())
        if most > ALIKE_SHARE * len(made):
            return (
                f"the arms' {METRICS[metric].words} have the very same {what} in {most:,} of "
                f"{len(made):,} pairs: one was computed from the other"
            )
    return None


def _known(values: FloatColumn) -> FloatColumn:
    """Return the measured values in whole nanoseconds, since sums of floats are not exact."""
    return np.round(values[np.isfinite(values)], 9)
