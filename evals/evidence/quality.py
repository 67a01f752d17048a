"""Wins, losses and ties of each scored metric."""

from collector.contract import QualityCounts
from evals.evidence.columns import BoolColumn, Evidence, Scores
from evals.stats.significant import significant


def quality(evidence: Evidence) -> tuple[QualityCounts, ...]:
    """Return the counts of each metric: all pairs first, then each cohort in which it applies."""
    found: list[QualityCounts] = []
    for metric in evidence.metrics:
        scores = evidence.scores(metric)
        scopes = {c: scores.applicable & evidence.scope(c) for c in (None, *evidence.all_cohorts)}
        found += [_of(scores, metric, c, scope) for c, scope in scopes.items() if scope.any()]
    return tuple(found)


def _of(scores: Scores, metric: str, cohort: str | None, scope: BoolColumn) -> QualityCounts:
    both = scope & scores.both
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
