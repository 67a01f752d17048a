"""An alarm on the candidate's acceptance rate, by cohort, while traffic flows."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from collector.contract import AcceptanceWatch, EProcess, Watch
from evals.evidence.columns import BoolColumn, FloatColumn
from evals.gate.treatment import drafted
from evals.stats.falls import Falls, Reference
from evals.watch.window import Window

FALSE_ALARMS: Final = 0.01
"""Bound on the probability that any cohort of a rollout ever raises a false alarm."""
FALL: Final = 0.05
"""Largest fall of the mean acceptance rate that is no drift."""
REFERENCE: Final = 400
"""The first requests of a cohort, with which later ones are compared."""
_LATELY: Final = 100
"""Requests over which the newest rate is averaged, with weights that decay."""
_WIDEST: Final = 0.99
"""Limit of a reference so uncertain that no fall can be proved."""


def with_acceptance(watch: Watch, window: Window, new: BoolColumn) -> Watch:
    """Return the watch with the acceptance rates of the window's new answers.

    Each cohort is compared with its own first 400 requests. The n-th cohort to appear has the share
    1/(n(n + 1)) of the false alarms, so the bound holds for any number of cohorts.
    """
    known = {one.cohort: one for one in watch.acceptance}
    for cohort, rates in _rates(window, new):
        was = known.get(cohort) or AcceptanceWatch(cohort=cohort, number=len(known) + 1)
        known[cohort] = after(was, rates, stretch=watch.stretch)
    return replace(watch, acceptance=tuple(known.values()))


def after(was: AcceptanceWatch, rates: FloatColumn, *, stretch: float = 1) -> AcceptanceWatch:
    """Return a cohort's alarm after more acceptance rates in [0, 1], in the order of arrival."""
    if was.drifted:
        return was
    alpha = FALSE_ALARMS / (was.number * (was.number + 1)) / 2  # half of it for the reference
    if was.fall is None:
        wanted = REFERENCE - len(was.first)
        was = replace(was, first=(*was.first, *(round(float(x), 4) for x in rates[:wanted])))
        rates = rates[wanted:]
        if len(was.first) == REFERENCE:
            was = _compared(was, Reference.of(np.array(was.first), alpha=alpha, stretch=stretch))
    if was.fall is None or was.reference is None or len(rates) == 0:
        return was
    fall = was.fall
    found = Falls(fall.limit, was.stretch, fall.n, fall.log_wealth, fall.highest_log_e)
    found = found.after(was.reference - rates)
    fall = EProcess(
        limit=found.limit,
        n=found.n,
        log_wealth=found.log_wealth,
        log_e=found.log_e,
        highest_log_e=found.highest_log_e,
    )
    now = replace(was, fall=fall, lately=_lately(was, rates))
    if found.highest_log_e < -math.log(alpha):
        return now
    return replace(now, drifted=True, message=_words(now, REFERENCE + found.n))


def _compared(was: AcceptanceWatch, reference: Reference) -> AcceptanceWatch:
    """Fix the reference; its requests are no longer needed."""
    limit = min(FALL + reference.reach, _WIDEST)
    return replace(
        was,
        first=(),
        reference=reference.mean,
        lately=reference.mean,
        stretch=reference.stretch,
        fall=EProcess(limit=limit, log_wealth=()),
    )


def _lately(was: AcceptanceWatch, rates: FloatColumn) -> float:
    """Return the exponentially weighted mean of the newest rates."""
    kept = (1 - 1 / _LATELY) ** np.arange(len(rates), -1, -1)
    new = float(rates @ kept[1:]) / _LATELY
    return float(kept[0]) * (was.lately or 0.0) + new


def _rates(window: Window, new: BoolColumn) -> Iterator[tuple[str | None, FloatColumn]]:
    """Yield each cohort's acceptance rates of the candidate's own answers, in order of arrival."""
    evidence, side = window.evidence, window.evidence.candidate
    known = new & drafted(side) & side.counts_usable
    known &= (side.draft_tokens > 0) & (side.accepted_tokens >= 0)
    known &= side.accepted_tokens <= side.draft_tokens
    order = np.argsort(window.arrived[1], kind="stable")
    order = order[known[order]]
    for index in np.unique(evidence.cohort_of[order]):
        rows = order[evidence.cohort_of[order] == index]
        cohort = None if index < 0 else evidence.cohorts[index]
        yield cohort, side.accepted_tokens[rows] / side.draft_tokens[rows]


def alarmed_at(rates: FloatColumn) -> int | None:
    """Return the number of requests after which a rollout's first cohort raises the alarm."""
    was, step = AcceptanceWatch(cohort=None, number=1), 20
    for start in range(0, len(rates), step):
        was = after(was, rates[start : start + step])
        if was.drifted:
            return start + step
    return None


def drift_words(watch: Watch) -> tuple[str, ...]:
    """Return a sentence for each cohort whose acceptance drifted."""
    return tuple(one.message for one in watch.acceptance if one.drifted)


def _words(now: AcceptanceWatch, requests: int) -> str:
    scope = "without a cohort" if now.cohort is None else f"in `{now.cohort}`"
    return (
        f"acceptance of requests {scope} fell: {now.reference:.1%} in the first {REFERENCE}, "
        f"{now.lately:.1%} lately, after {requests:,}"
    )
