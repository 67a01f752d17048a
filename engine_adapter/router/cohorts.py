"""Find a request's cohort: from its header, else by a rule, else by its shape."""

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from engine_adapter.router.conditions import Conditions, Moment
from engine_adapter.router.decision import RequestFacts
from engine_adapter.routes import Section

HEADER: Final = "x-draftgate-cohort"
_NAME: Final = r"[\w.:/-]{1,100}"
Name = Annotated[str, Field(pattern=f"^{_NAME}$")]


class CohortRule(Conditions):
    """Conditions, and the cohort of requests that match them."""

    cohort: Name
    """The cohort of requests that match: up to 100 letters, digits and `_.:/-`."""


class CohortSection(Section):
    """The `cohorts` of a routes file."""

    header: Annotated[str, Field(min_length=1)] = HEADER
    """The request header in which clients may name the cohort."""
    known: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    """The names that the header may give; default: any."""
    rules: tuple[CohortRule, ...] = ()
    """Rules for requests without such a header; the first whose conditions all hold counts."""
    classifier: Literal["shape", "none"] = "shape"
    """Without a matching rule: `shape` finds `tool_call`, `json`, `rag` or `code` by the request's
    tools, format and text."""
    default: Name = "chat"
    """The cohort if nothing else decides."""


class Cohorts:
    """Finds a request's cohort."""

    def __init__(self, section: CohortSection) -> None:
        self._header = section.header.lower()
        self._known = None if section.known is None else frozenset(section.known)
        self._rules: Sequence[CohortRule] = section.rules
        self._by_shape = section.classifier == "shape"
        self._default = section.default

    def of(self, moment: Moment) -> str:
        """Return the cohort: the header's, else the first matching rule's, else by shape."""
        said = moment.facts.headers.get(self._header)
        if said is not None and self._may_say(said):
            return said
        for rule in self._rules:
            if rule.matches(moment):
                return rule.cohort
        return (shape(moment.facts) if self._by_shape else None) or self._default

    def explained(self) -> list[str]:
        """Describe in words how a cohort is found, one line per step."""
        names = "any name" if self._known is None else ", ".join(sorted(self._known))
        lines = [f"header {self._header} ({names})"]
        lines += [f"{rule.words()} → {rule.cohort}" for rule in self._rules]
        if self._by_shape:
            lines.append("tools → tool_call, JSON mode → json, passages → rag, code → code")
        return [*lines, f"otherwise → {self._default}"]

    def _may_say(self, said: str) -> bool:
        if self._known is not None:
            return said in self._known
        return re.fullmatch(_NAME, said) is not None


def shape(facts: RequestFacts) -> str | None:
    """Return the cohort by the request's shape; `None` if none fits.

    Tools are tested first: an agent's requests hold passages and code as well.
    """
    if facts.tools:
        return "tool_call"
    if facts.json_mode:
        return "json"
    if facts.passages:
        return "rag"
    return "code" if facts.code else None
