"""The candidates of a family by cohort: which pass, how fast they are, and the best that passes."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.contract import LATENCIES, Family, Finding, MayShip, Outcome, Reason, Verdict

ABOUT = (
    "The best passes, and of those the lower limit of its speed-up is the greatest; it is above 1, "
    "or else the baseline stays. Each candidate is judged at the policy's levels divided by the "
    "number of candidates, so that all limits of a scope hold together."
)
_TIMES = tuple(reversed([*LATENCIES]))
"""Latencies whose ratio is a speed-up, the preferred one first."""
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
class SpeedUp:
    """The baseline's geometric mean time over the candidate's, with one-sided limits."""

    metric: str
    estimate: float
    lower: float | None
    upper: float | None
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswer:
    """Whether a candidate passes in one scope, and its speed-up there."""

    arm: str
    answer: MayShip
    because: str
    speed_up: SpeedUp | None = None
    """None if it was not measured, or may not be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """All candidates in one scope."""

    cohort: str | None
    """None: the release, over all cohorts."""
    answers: tuple[ArmAnswer, ...]
    best: str | None
    """The passing candidate whose speed-up has the greatest lower limit; None if no passing
    candidate's lower limit is above 1, so that none is shown to be faster than the baseline."""


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
    speed_up = _speed_up(verdict, cohort, metric)
    if cohort is None:
        answer, because = _ANSWERS[verdict.outcome], verdict.summary
    else:
        found = next((one for one in verdict.cohorts if one.cohort == cohort), None)
        answer = MayShip.UNKNOWN if found is None else found.answer
        because = "it has no pair of this cohort" if found is None else found.because
    return ArmAnswer(arm=arm, answer=answer, because=because, speed_up=speed_up)


def _speed_up(verdict: Verdict, cohort: str | None, metric: str | None) -> SpeedUp | None:
    for f in verdict.findings:
        if (f.metric, f.stat, f.cohort) != (metric, _STAT, cohort) or not f.estimate:
            continue
        if f.reason not in _OF_SAMPLE:
            return None
        return SpeedUp(
            metric=f.metric,
            estimate=1 / f.estimate,
            lower=_inverse(f.upper),
            upper=_inverse(f.lower),
            confidence=f.confidence,
        )
    return None


def _inverse(ratio: float | None) -> float | None:
    return 1 / ratio if ratio else None


def _best(answers: Sequence[ArmAnswer]) -> str | None:
    faster = [
        (one.speed_up.lower, one.arm)
        for one in answers
        if one.answer is MayShip.YES and one.speed_up and (one.speed_up.lower or 0) > 1
    ]
    return max(faster, key=lambda found: found[0] or 0)[1] if faster else None
