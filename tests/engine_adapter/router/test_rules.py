"""Rules: the first that matches counts; a truth table of every condition."""

from datetime import UTC, datetime
from typing import Any

import pytest

from collector.contract import Arm
from engine_adapter.router.conditions import Moment
from engine_adapter.router.decision import RequestFacts
from engine_adapter.router.rules import RoutingRule, Rules

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday


def moment(now: datetime = NOON, cohort: str | None = "chat", **facts: Any) -> Moment:
    return Moment(RequestFacts(**({"path": "/chat/completions"} | facts)), cohort, now)


TABLE: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, True),
    ({"model": "qwen*"}, {"model": "qwen-7b"}, True),
    ({"model": "qwen*"}, {"model": "llama"}, False),
    ({"model": "qwen*"}, {}, False),
    ({"model": ["a", "b"]}, {"model": "b"}, True),
    ({"path": "/completions"}, {}, False),
    ({"cohort": ["chat", "rag"]}, {}, True),
    ({"cohort": "rag"}, {}, False),
    ({"cohort": "rag"}, {"cohort": None}, False),
    ({"max_tokens": {"below": 32}}, {"max_tokens": 31}, True),
    ({"max_tokens": {"below": 32}}, {"max_tokens": 32}, False),
    ({"max_tokens": {"below": 32}}, {}, False),
    ({"max_tokens": {"at_most": 32}}, {"max_tokens": 32}, True),
    ({"max_tokens": {"above": 32}}, {"max_tokens": 32}, False),
    ({"max_tokens": {"at_least": 32, "below": 64}}, {"max_tokens": 32}, True),
    ({"max_tokens": {"at_least": 32, "below": 64}}, {"max_tokens": 64}, False),
    ({"input_characters": {"above": 1e4}}, {"input_characters": 10_001}, True),
    ({"input_characters": {"above": 1e4}}, {}, False),
    ({"temperature": {"above": 0}}, {"temperature": 0.7}, True),
    ({"temperature": {"above": 0}}, {"temperature": 0.0}, False),
    ({"temperature": {"above": 0}}, {}, False),
    ({"concurrency": {"at_least": 4, "at_most": 7}}, {"concurrency": 3}, True),
    ({"concurrency": {"at_least": 4, "at_most": 7}}, {"concurrency": 2}, False),
    ({"concurrency": {"at_least": 4, "at_most": 7}}, {"concurrency": 7}, False),
    ({"tools": True}, {"tools": True}, True),
    ({"tools": True}, {}, False),
    ({"tools": False}, {}, True),
    ({"json_mode": True}, {"json_mode": True}, True),
    ({"stream": False}, {"stream": True}, False),
    ({"code": True}, {"code": True}, True),
    ({"passages": True}, {"passages": False}, False),
    ({"header": {"X-Tier": "gold*"}}, {"headers": {"x-tier": "gold-2"}}, True),
    ({"header": {"X-Tier": "gold*"}}, {"headers": {"x-tier": "tin"}}, False),
    ({"header": {"X-Tier": "*"}}, {"headers": {}}, False),
    ({"header": {"a": "1", "b": "2"}}, {"headers": {"a": "1"}}, False),
    ({"tools": True, "max_tokens": {"below": 32}}, {"tools": True, "max_tokens": 8}, True),
    ({"tools": True, "max_tokens": {"below": 32}}, {"tools": True, "max_tokens": 80}, False),
]


@pytest.mark.parametrize(("conditions", "facts", "matches"), TABLE)
def test_each_condition(conditions: dict[str, Any], facts: dict[str, Any], matches: bool) -> None:
    """What a request does not say matches no bound; all conditions of a rule must hold."""
    rules = Rules([RoutingRule.model_validate({"to": "baseline"} | conditions)], Arm.CANDIDATE)
    assert (rules.first_match(moment(**facts)).to is Arm.BASELINE) is matches


NIGHT = {"from": "22:00", "to": "06:00", "zone": "Europe/Berlin"}
HOURS = [
    ({"from": "12:00", "to": "13:00"}, datetime(2026, 11, 20, 12, 0, tzinfo=UTC), True),
    ({"from": "12:00", "to": "13:00"}, datetime(2026, 11, 20, 13, 0, tzinfo=UTC), False),
    (NIGHT, datetime(2026, 11, 20, 20, 59, tzinfo=UTC), False),
    (NIGHT, datetime(2026, 11, 20, 21, 0, tzinfo=UTC), True),  # 22:00 in Berlin, in winter
    (NIGHT, datetime(2026, 7, 20, 20, 0, tzinfo=UTC), True),  # 22:00 in Berlin, in summer
    (NIGHT, datetime(2026, 11, 21, 4, 59, tzinfo=UTC), True),
    (NIGHT, datetime(2026, 11, 21, 5, 0, tzinfo=UTC), False),
    (NIGHT | {"days": ["fri"]}, datetime(2026, 11, 20, 22, tzinfo=UTC), True),
    (NIGHT | {"days": ["fri"]}, datetime(2026, 11, 21, 4, tzinfo=UTC), True),  # Friday's night
    (NIGHT | {"days": ["fri"]}, datetime(2026, 11, 20, 4, tzinfo=UTC), False),  # Thursday's
    (NIGHT | {"days": ["fri"]}, datetime(2026, 11, 21, 22, tzinfo=UTC), False),
]


@pytest.mark.parametrize(("window", "now", "matches"), HOURS)
def test_the_time_of_day(window: dict[str, Any], now: datetime, matches: bool) -> None:
    """A window stands in its zone, goes over midnight, and belongs to the day it begins on."""
    rules = Rules([RoutingRule.model_validate({"to": "baseline", "time": window})], Arm.CANDIDATE)
    assert (rules.first_match(moment(now)).to is Arm.BASELINE) is matches


def test_the_first_match_counts() -> None:
    """Later rules are not asked; without a match, the default counts; each says why."""
    rules = Rules(
        [
            RoutingRule.model_validate(
                {"to": "candidate", "cohort": "chat", "max_tokens": {"above": 99}}
            ),
            RoutingRule.model_validate({"to": "baseline", "cohort": "chat", "reason": "it loses"}),
        ],
        Arm.CANDIDATE,
    )
    assert rules.first_match(moment(max_tokens=100)) == (
        Arm.CANDIDATE,
        "rule 1: cohort chat and max_tokens above 99",
    )
    assert rules.first_match(moment(max_tokens=9)) == (Arm.BASELINE, "rule 2: cohort chat")
    assert rules.first_match(moment(cohort="rag")) == (Arm.CANDIDATE, "no rule matches")
    assert rules.explained() == [
        "rule 1: cohort chat and max_tokens above 99 → candidate",
        "rule 2: cohort chat → baseline (it loses)",
        "otherwise → candidate",
    ]


def test_a_rule_in_words() -> None:
    """Each condition says what it asks."""
    rule = RoutingRule.model_validate(
        {
            "to": "baseline",
            "model": ["a", "b*"],
            "tools": False,
            "header": {"X-Tier": "gold"},
            "concurrency": {"at_least": 8},
            "time": {"from": "08:00", "to": "18:00", "days": ["mon", "tue"]},
        }
    )
    assert rule.words() == (
        "model a or b* and concurrency at least 8 and no tools and header X-Tier: gold "
        "and from 08:00 to 18:00 UTC on mon, tue"
    )
