"""Rules of eligibility: the first that matches says whether a request may go to the candidate."""

from collections.abc import Sequence
from typing import NamedTuple

from collector.contract import Arm
from engine_adapter.router.conditions import Conditions, Moment, Texts, cohort_condition


class Rule(Conditions):
    """Where the requests go that match."""

    to: Arm
    """`candidate`: they may go there, by the mode and its share."""
    cohort: Texts | None = None
    reason: str | None = None
    """Why, such as `draftgate advise` says it."""

    def model_post_init(self, context: object, /) -> None:
        """Ask the cohort first, which costs least."""
        super().model_post_init(context)
        cohort = cohort_condition(self.cohort)
        self._made = (*(() if cohort is None else (cohort,)), *self._made)


class Match(NamedTuple):
    """What the rules say of a request."""

    to: Arm
    reason: str
    """Such as `rule 2: max_tokens below 32`."""


class Rules:
    """Rules in order, and where the requests go that match none."""

    def __init__(self, rules: Sequence[Rule], default: Arm) -> None:
        self._rules = [
            (rule, Match(rule.to, f"rule {number}: {rule.words()}"))
            for number, rule in enumerate(rules, 1)
        ]
        self._default = Match(default, "no rule matches")

    def first_match(self, moment: Moment) -> Match:
        """Return what the first rule that matches says, else the default."""
        return next((match for rule, match in self._rules if rule.hold(moment)), self._default)

    def explained(self) -> list[str]:
        """Return one line a rule, in words."""
        lines = [
            f"{match.reason} → {match.to}" + (f" ({rule.reason})" if rule.reason else "")
            for rule, match in self._rules
        ]
        return [*lines, f"otherwise → {self._default.to}"]
