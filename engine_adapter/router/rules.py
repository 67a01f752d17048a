"""Eligibility rules: the first match decides whether a request may go to the candidate."""

from collections.abc import Sequence
from typing import NamedTuple

from collector.contract import Arm
from engine_adapter.router.conditions import Conditions, Moment, Texts, cohort_condition


class RoutingRule(Conditions):
    """One rule: conditions, and the arm for requests that match them."""

    to: Arm
    """The arm of matching requests; `candidate` is subject to the mode and its share."""
    cohort: Texts | None = None
    """Cohorts, or bands of input tokens: one text or a list; `*` matches any text."""
    reason: str | None = None
    """A note for people, no condition."""

    def model_post_init(self, context: object, /) -> None:
        """Test the cohort first, the cheapest condition."""
        super().model_post_init(context)
        cohort = cohort_condition(self.cohort)
        self._made = (*(() if cohort is None else (cohort,)), *self._made)


class Match(NamedTuple):
    """The result of the rules for one request."""

    to: Arm
    reason: str
    """Such as `rule 2: max_tokens below 32`."""


class Rules:
    """An ordered list of rules with a default for requests that match none."""

    def __init__(self, rules: Sequence[RoutingRule], default: Arm) -> None:
        self._rules = [
            (rule, Match(rule.to, f"rule {number}: {rule.words()}"))
            for number, rule in enumerate(rules, 1)
        ]
        self._default = Match(default, "no rule matches")

    def first_match(self, moment: Moment) -> Match:
        """Return the result of the first matching rule, else the default."""
        return next((match for rule, match in self._rules if rule.matches(moment)), self._default)

    def explained(self) -> list[str]:
        """Return the rules in words, one line each."""
        lines = [
            f"{match.reason} → {match.to}" + (f" ({rule.reason})" if rule.reason else "")
            for rule, match in self._rules
        ]
        return [*lines, f"otherwise → {self._default.to}"]
