"""Wins, losses and ties of each scored metric."""

import numpy as np

from collector.contract import QualityCounts
from evals.evidence import BoolColumn, Evidence, Scores
from evals.significant import significant


def quality(evidence: Evidence) -> tuple[QualityCounts, ...]:
    """Return the counts of each metric: the pool first, then each cohort that has a score."""
    found: list[QualityCounts] = []
    for metric in evidence.metrics:
        used, scores = used_in(evidence, metric), evidence.scores(metric)
        scopes = {c: used & evidence.scope(c) for c in (None, *evidence.cohorts)}
        found += [_of(scores, metric, c, scope) for c, scope in scopes.items() if scope.any()]
    return tuple(found)


def used_in(evidence: Evidence, metric: str) -> BoolColumn:
    """Return the pairs of the cohorts in which the metric has any score."""
    none = np.full(len(evidence), np.nan)
    sides = [side.scores.get(metric, none) for side in (evidence.baseline, evidence.candidate)]
    scored = ~np.isnan(sides[0]) | ~np.isnan(sides[1])
    return evidence.in_cohorts_of(scored)


def _of(scores: Scores, metric: str, cohort: str | None, scope: BoolColumn) -> QualityCounts:
    both = scope & scores.applicable & ~np.isnan(scores.baseline) & ~np.isnan(scores.candidate)
    baseline, candidate = scores.baseline[both], scores.candidate[both]
    return QualityCounts(
        metric=metric,
        cohort=cohort,
        n=int(both.sum()),
        unscored=int((scope & ~both).sum()),
        baseline_mean=significant(float(baseline.mean())) if both.any() else None,
        candidate_mean=significant(float(candidate.mean())) if both.any() else None,
        wins=int((candidate > baseline).sum()),
        losses=int((candidate < baseline).sum()),
        ties=int((candidate == baseline).sum()),
    )
