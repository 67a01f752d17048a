"""Limit advice by the verdict: speed alone never allows a candidate to serve."""

from typing import NamedTuple

from collector.contract import Arm, MayShip, Outcome, Verdict
from evals.advice.records import Action

_ANSWERS = {
    Outcome.PASS: MayShip.YES,
    Outcome.FAIL: MayShip.NO,
    Outcome.INCONCLUSIVE: MayShip.UNKNOWN,
}


class PermittedAction(NamedTuple):
    """The action for a scope, and its reason."""

    action: Action
    reason: str
    missing: tuple[str, ...] = ()


class Permission:
    """The limits that the newest verdict on a rollout sets, for each cohort."""

    def __init__(self, rollout: str, verdict: Verdict | None) -> None:
        self._rollout = rollout
        self._verdict = verdict

    @property
    def default(self) -> Arm:
        """The arm for requests that match no rule."""
        return Arm.CANDIDATE if self.answer(None) is MayShip.YES else Arm.BASELINE

    def answer(self, cohort: str | None) -> MayShip | None:
        """Return the answer for a cohort or (`None`) the release; `None` without a verdict."""
        return None if self._verdict is None else self._answer_and_reason(self._verdict, cohort)[0]

    def limited(self, by_speed: PermittedAction, cohort: str | None) -> PermittedAction:
        """Return the decision, restricted to what the verdict allows."""
        serves = by_speed.action in (Action.KEEP, Action.CHANGE_K)
        if self._verdict is None:
            if not serves:
                return by_speed
            unjudged = f"a verdict: draftgate gate {self._rollout}"
            return PermittedAction(Action.UNKNOWN, by_speed.reason, (*by_speed.missing, unjudged))
        answer, because = self._answer_and_reason(self._verdict, cohort)
        if answer is MayShip.NO:
            reason = f"the verdict says no: {because}; its speed: {by_speed.reason}"
            return PermittedAction(Action.DISABLE, reason, by_speed.missing)
        if answer is MayShip.UNKNOWN and serves:
            reason = f"the verdict is open: {because}; its speed: {by_speed.reason}"
            return PermittedAction(Action.UNKNOWN, reason, by_speed.missing)
        return by_speed

    @staticmethod
    def _answer_and_reason(verdict: Verdict, cohort: str | None) -> tuple[MayShip, str]:
        if cohort is None:
            because = verdict.summary.partition(": ")[2] or verdict.summary
            return _ANSWERS[verdict.outcome], because.removesuffix(".")
        found = next((one for one in verdict.cohorts if one.cohort == cohort), None)
        if found is not None:
            return found.answer, found.because
        if not verdict.cohorts:  # judged as a whole
            return Permission._answer_and_reason(verdict, None)
        return MayShip.UNKNOWN, "it does not speak of this cohort"
