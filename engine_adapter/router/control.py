"""Decide where a request goes: by mode, switch, path and rules, then by mode and share."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from collector.contract import Arm, to_document
from engine_adapter.recording import GENERATION_PATHS
from engine_adapter.router.assignment import Assignment
from engine_adapter.router.cohorts import Cohorts
from engine_adapter.router.conditions import Moment
from engine_adapter.router.decision import Decision, Mode, RequestFacts
from engine_adapter.router.input_lengths import InputLengths
from engine_adapter.router.rules import Rules
from engine_adapter.router.switch_follower import SwitchFollower


class RolloutControl:
    """A `Control` for one rollout; no method waits."""

    def __init__(  # noqa: PLR0913  # one argument a subject of the routes file
        self,
        *,
        rollout: str,
        mode: Mode,
        share_percent: float | None,
        rules: Rules,
        cohorts: Cohorts,
        assignment: Assignment,
        source: SwitchFollower,
        lengths: InputLengths,
        now: Callable[[], datetime],
    ) -> None:
        """`share_percent` is `None` if the ramp determines the share."""
        self._rollout = rollout
        self._mode = mode
        self._share_percent = share_percent
        self._rules = rules
        self._cohorts = cohorts
        self._assignment = assignment
        self._source = source
        self._lengths = lengths
        self._now = now

    def decide(self, facts: RequestFacts) -> Decision:
        """Return where a request goes, and its session."""
        return replace(self._decided(facts), session=self._assignment.session(facts))

    def _decided(self, facts: RequestFacts) -> Decision:
        now = self._now()
        cohort = self._cohorts.of(Moment(facts, None, now))
        blocked = self._why_blocked(facts)
        if blocked is not None:
            return self._baseline(cohort, blocked)
        band = self._lengths.band(facts.input_characters)
        match = self._rules.first_match(Moment(facts, cohort, now, band))
        if match.to is Arm.BASELINE:
            return self._baseline(cohort, match.reason)
        if self._mode is Mode.CANDIDATE:
            return self._candidate(cohort, "mode candidate")
        percent = self._share()
        share = f"{self._mode}: {percent:g} %"
        if self._mode is Mode.MIRROR:
            drawn = self._assignment.drawn(percent)
            return self._baseline(cohort, share if drawn else f"not in {share}", mirrored=drawn)
        if self._assignment.in_share(facts, percent):
            return self._candidate(cohort, share)
        return self._baseline(cohort, f"not in {share}")

    def candidate_allowed(self) -> bool:
        """Return whether the mode and the rollout's switch now allow the candidate."""
        return self._mode is not Mode.BASELINE and self._source.known.on

    def counted(self, characters: int | None, tokens: int | None) -> None:
        """Note the input tokens that an engine counted for a request."""
        self._lengths.counted(characters, tokens)

    def state(self) -> Mapping[str, object]:
        """Return mode, share, switch and ramp, as JSON values."""
        known, trouble = self._source.known, self._source.trouble
        return {
            "rollout": self._rollout,
            "mode": self._mode.value,
            "share_percent": self._share() if self._mode in (Mode.MIRROR, Mode.SPLIT) else None,
            "candidate_allowed": self.candidate_allowed(),
            "switch": None if known.switch is None else to_document(known.switch),
            "ramp": None if known.ramp is None else to_document(known.ramp),
            "input_tokens": self._lengths.state(),
            "told_unix_ns": known.told_unix_ns,
            "collector_trouble": trouble,
        }

    def _why_blocked(self, facts: RequestFacts) -> str | None:
        """Return why the candidate cannot get the request, whatever the rules are."""
        if self._mode is Mode.BASELINE:
            return "mode baseline"
        known = self._source.known
        if known.switch is None:
            return "switch: never set" if known.told_unix_ns else "switch: not known"
        if not known.on:
            return "switch: off"
        if facts.path not in GENERATION_PATHS:
            return "only generations are eligible"
        return None

    def _share(self) -> float:
        if self._share_percent is not None:
            return self._share_percent
        step = self._source.known.ramp
        return 0.0 if step is None else step.percent

    def _candidate(self, cohort: str, reason: str) -> Decision:
        return Decision(rollout=self._rollout, arm=Arm.CANDIDATE, cohort=cohort, reason=reason)

    def _baseline(self, cohort: str, reason: str, *, mirrored: bool = False) -> Decision:
        return Decision(
            rollout=self._rollout,
            arm=Arm.BASELINE,
            mirrored=mirrored,
            cohort=cohort,
            reason=reason,
        )
