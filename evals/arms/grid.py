"""The candidates of a family by cohort: which pass, how fast they are, and the best that passes."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.contract import LATENCIES, Family, Finding, MayShip, Outcome, Reason, Verdict

ABOUT = (
    "The best passes, and of those the upper limit of its time, candidate ÷ baseline, is the "
    "least; it is below 1, or else the baseline stays. Each candidate is judged at the policy's "
    "levels divided by the number of candidates, so that all limits of a scope hold together."
)
_TIMES = tuple(reversed([*LATENCIES]))
"""Latencies that are compared, the preferred one first."""
_STAT = "geomean_ratio"
_OF_SAMPLE = (None, Reason.TOO_FEW, Reason.TOO_CLOSE)
"""Reasons that leave a finding's limits valid."""
OUTCOMES = {
    MayShip.YES: Outcome.PASS,
    MayShip.NO: Outcome.FAIL,
    MayShip.UNKNOWN: Outcome.INCONCLUSIVE,
}
_ANSWERS = {outcome: answer for answer, outcome in OUTCOMES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeTime:
    """The candidate's geometric mean time over the baseline's, with one-sided limits."""

    metric: str
    estimate: float
    lower: float | None
    upper: float | None
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswer:
    """Whether a candidate passes in one scope, and its time there."""

    arm: str
    answer: MayShip
    because: str
    time: RelativeTime | None = None
    """None if it was not measured, or may not be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """All candidates in one scope."""

    cohort: str | None
    """None: the release, over all cohorts."""
    answers: tuple[ArmAnswer, ...]
    best: str | None
    """The passing candidate whose time has the least upper limit; None if no passing candidate's
    upper limit is below 1, so that none is shown to be faster than the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A family's candidates by cohort."""

    family: Family
    outcome: Outcome
    """`pass` if a candidate passes, `fail` if all fail, else `inconclusive`."""
    rows: tuple[GridRow, ...]
    """The release first, then the cohorts by name."""


def grid(family: Family, verdicts: Sequence[Verdict | None]) -> Grid:
    """Return the grid of the candidates' verdicts, in the family's order; None if not judged."""
    judged = {arm: verdict for arm, verdict in zip(family.arms, verdicts, strict=True) if verdict}
    cohorts = sorted({one.cohort for verdict in judged.values() for one in verdict.cohorts})
    outcomes = [None if verdict is None else verdict.outcome for verdict in verdicts]
    return Grid(
        family=family,
        outcome=_outcome(outcomes),
        rows=tuple(_row(family, judged, cohort) for cohort in (None, *cohorts)),
    )


def _outcome(outcomes: Sequence[Outcome | None]) -> Outcome:
    if Outcome.PASS in outcomes:
        return Outcome.PASS
    return Outcome.FAIL if set(outcomes) == {Outcome.FAIL} else Outcome.INCONCLUSIVE


def _row(family: Family, judged: dict[str, Verdict], cohort: str | None) -> GridRow:
    metric = _metric([f for verdict in judged.values() for f in verdict.findings], cohort)
    answers = tuple(_answer(arm, judged.get(arm), cohort, metric) for arm in family.arms)
    return GridRow(cohort=cohort, answers=answers, best=_best(answers))


def _metric(findings: Sequence[Finding], cohort: str | None) -> str | None:
    """Return the time that is compared in a scope: the first of `_TIMES` that was measured."""
    seen = {f.metric for f in findings if f.cohort == cohort and f.stat == _STAT and f.estimate}
    return next((metric for metric in _TIMES if metric in seen), None)


def _answer(arm: str, verdict: Verdict | None, cohort: str | None, metric: str | None) -> ArmAnswer:
    if verdict is None:
        return ArmAnswer(arm=arm, answer=MayShip.UNKNOWN, because="not judged yet")
    time = _time(verdict, cohort, metric)
    if cohort is None:
        answer, because = _ANSWERS[verdict.outcome], verdict.summary
    else:
        found = next((one for one in verdict.cohorts if one.cohort == cohort), None)
        answer = MayShip.UNKNOWN if found is None else found.answer
        because = "it has no pair of this cohort" if found is None else found.because
    return ArmAnswer(arm=arm, answer=answer, because=because, time=time)


def _time(verdict: Verdict, cohort: str | None, metric: str | None) -> RelativeTime | None:
    for f in verdict.findings:
        if (f.metric, f.stat, f.cohort) != (metric, _STAT, cohort) or not f.estimate:
            continue
        if f.reason not in _OF_SAMPLE:
            return None
        return RelativeTime(
            metric=f.metric,
            estimate=f.estimate,
            lower=f.lower,
            upper=f.upper,
            confidence=f.confidence,
        )
    return None


def _best(answers: Sequence[ArmAnswer]) -> str | None:
    faster = [
        (one.time.upper, one.arm)
        for one in answers
        if one.answer is MayShip.YES and one.time and one.time.upper and one.time.upper < 1
    ]
    return min(faster)[1] if faster else None
