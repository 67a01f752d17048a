"""Speculation that adapts to the load: whether, and how far, answers drafted at each load."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import fisher_exact

from collector.contract import DraftsAtLoad, LoadAdaptation, LoadAdaptationName
from evals.stats import Insufficient
from evals.stats.significant import significant
from evals.stats.welch import mean_difference

_FEWEST: Final = 20
"""Answers that a load needs to be compared."""
_LEVEL: Final = 0.001
"""One-sided level of each comparison."""
_LEAST_SHARE: Final = 0.1
"""Difference of the shares of answers without a draft from which it is named."""
_LEAST_CHANGE: Final = 0.1
"""Relative change of the drafts per step from which it is named."""

Load = tuple[int, int]
"""First and last number of requests in flight."""


class AnswerDrafts(NamedTuple):
    """The drafts of one answer of an arm that speculates."""

    load: Load
    draft_tokens: int
    steps: int | None
    """Verify steps; `None` if unknown."""

    @property
    def per_step(self) -> float | None:
        """Draft tokens per verify step; `None` without drafts, or if unknown."""
        return self.draft_tokens / self.steps if self.draft_tokens and self.steps else None


def at_loads(answers: Sequence[AnswerDrafts]) -> tuple[DraftsAtLoad, ...]:
    """Return the drafts at each load, from the lowest; none if all answers had one load."""
    loads = sorted({one.load for one in answers})
    if len(loads) < 2:
        return ()
    return tuple(_at(load, [one for one in answers if one.load == load]) for load in loads)


def _at(load: Load, answers: Sequence[AnswerDrafts]) -> DraftsAtLoad:
    steps = [one for one in answers if one.per_step is not None]
    whole = sum(one.steps or 0 for one in steps)
    return DraftsAtLoad(
        in_flight=load,
        answers=len(answers),
        undrafted=sum(not one.draft_tokens for one in answers),
        drafts_per_step=significant(sum(one.draft_tokens for one in steps) / whole)
        if whole
        else None,
    )


def adaptations(answers: Sequence[AnswerDrafts]) -> tuple[LoadAdaptation, ...]:
    """Return how speculation differs between the lowest and the highest load, if it clearly does.

    Loads with fewer than 20 answers are left out. Shares of answers without a draft are compared by
    Fisher's exact test, drafts per step (of answers with drafts) by Welch's t, each at level .001.
    """
    known = [one for one in at_loads(answers) if one.answers >= _FEWEST]
    if len(known) < 2:
        return ()
    low, high = known[0].in_flight, known[-1].in_flight
    low_answers, high_answers = ([a for a in answers if a.load == load] for load in (low, high))
    return (*_turned_off(low_answers, high_answers), *_shortened(low_answers, high_answers))


def _turned_off(
    low: Sequence[AnswerDrafts], high: Sequence[AnswerDrafts]
) -> Iterator[LoadAdaptation]:
    without = [sum(not one.draft_tokens for one in answers) for answers in (high, low)]
    shares = [n / len(of) for n, of in zip(without, (high, low), strict=True)]
    if shares[0] - shares[1] < _LEAST_SHARE:
        return
    counts = [[n, len(of) - n] for n, of in zip(without, (high, low), strict=True)]
    if fisher_exact(counts, alternative="greater").pvalue < _LEVEL:
        name = LoadAdaptationName.OFF_UNDER_LOAD
        yield _adaptation(name, (low, high), (shares[1], shares[0]))


def _shortened(
    low: Sequence[AnswerDrafts], high: Sequence[AnswerDrafts]
) -> Iterator[LoadAdaptation]:
    both = [np.array([a.per_step for a in of if a.per_step is not None]) for of in (low, high)]
    if min(map(len, both)) < _FEWEST:
        return
    means = float(both[0].mean()), float(both[1].mean())
    if abs(means[1] / means[0] - 1) < _LEAST_CHANGE:
        return
    larger, smaller = (both[0], both[1]) if means[0] > means[1] else (both[1], both[0])
    found = mean_difference(larger, smaller, margin=0.0, bound="max", confidence=1 - _LEVEL)
    if isinstance(found, Insufficient) or found.p_fail < _LEVEL:  # equal within, different between
        yield _adaptation(LoadAdaptationName.ADAPTIVE_DRAFT_LENGTH, (low, high), means)


def _adaptation(
    name: LoadAdaptationName,
    of: tuple[Sequence[AnswerDrafts], Sequence[AnswerDrafts]],
    values: tuple[float, float],
) -> LoadAdaptation:
    return LoadAdaptation(
        name=name,
        low=of[0][0].load,
        high=of[1][0].load,
        at_low=float(significant(values[0]) or 0.0),
        at_high=float(significant(values[1]) or 0.0),
    )
