"""Cohorts: named by the request, else by a rule, else by its shape, else a visible default."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine_adapter.router.cohorts import Cohorts, CohortSection
from engine_adapter.router.conditions import Moment
from engine_adapter.router.facts import facts_of

SECTION = {
    "known": ["rag", "vip", "chat"],
    "rules": [
        {"cohort": "vip", "header": {"x-tier": "gold"}},
        {"cohort": "long", "input_characters": {"above": 100}},
    ],
    "default": "other",
}


@pytest.mark.parametrize(
    ("headers", "body", "cohort"),
    [
        ({"X-Draftgate-Cohort": "rag", "x-tier": "gold"}, {}, "rag"),
        ({"x-draftgate-cohort": "made-up"}, {}, "other"),
        ({"x-draftgate-cohort": "made-up", "x-tier": "gold"}, {}, "vip"),
        ({}, {"prompt": "x" * 101, "tools": [{}]}, "long"),
        ({}, {"tools": [{}], "response_format": {"type": "json_object"}}, "tool_call"),
        ({}, {"prompt": "Context: a ```", "response_format": {"type": "json_object"}}, "json"),
        ({}, {"prompt": "Context: a ```"}, "rag"),
        ({}, {"prompt": "```"}, "code"),
        ({}, {"prompt": "Hello"}, "other"),
    ],
)
def test_who_says_first(headers: dict[str, str], body: dict[str, Any], cohort: str) -> None:
    """A known name in the header wins, then the first rule, then the shape, then the default."""
    cohorts = Cohorts(CohortSection.model_validate(SECTION))
    facts = facts_of("/completions", body, headers, 0)
    assert cohorts.of(Moment(facts, None, datetime.now(UTC))) == cohort


@pytest.mark.parametrize("said", ["", "x" * 101, "a b", "naïve\n", "<script>"])
def test_a_header_that_is_no_name_is_passed_over(said: str) -> None:
    """Without known names any may be said, but not any text."""
    cohorts = Cohorts(CohortSection(classifier="none"))
    facts = facts_of("/completions", {"tools": [{}]}, {"x-draftgate-cohort": said}, 0)
    assert cohorts.of(Moment(facts, None, datetime.now(UTC))) == "chat"


def test_the_steps_are_said_in_words() -> None:
    """Each step that can name a cohort has a line, the default among them."""
    assert Cohorts(CohortSection.model_validate(SECTION)).explained() == [
        "header x-draftgate-cohort (chat, rag, vip)",
        "header x-tier: gold → vip",
        "input_characters above 100 → long",
        "tools → tool_call, JSON mode → json, passages → rag, code → code",
        "otherwise → other",
    ]
