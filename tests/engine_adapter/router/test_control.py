"""Decisions: switch, path, rules and mode, in this order."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from told_controls import Told, control, switched

from collector.contract import Arm, Switch
from engine_adapter.router.assignment import Assignment, Sticky
from engine_adapter.router.decision import Decision, Mode, RequestFacts
from engine_adapter.router.facts import facts_of
from engine_adapter.router.known_state import KnownState

ASK = RequestFacts(path="/chat/completions", headers={"x-session-id": "s"})
SESSION = Assignment("k4", Sticky(), lambda: 0.0).session(ASK)


def to(arm: Arm, reason: str, *, mirrored: bool = False) -> Decision:
    return Decision(
        rollout="k4",
        arm=arm,
        mirrored=mirrored,
        cohort="chat",
        session=SESSION,
        reason=reason,
    )


def test_each_mode_with_the_switch_on() -> None:
    """All stays, a part is mirrored, a part is split, all goes."""
    on = switched(Switch.ON)
    decided = [
        control(on, mode="baseline").decide(ASK),
        control(on, mode="mirror", share=100).decide(ASK),
        control(on, mode="mirror", share=0).decide(ASK),
        control(on, mode="split", share=100).decide(ASK),
        control(on, mode="split", share=0).decide(ASK),
        control(on, mode="candidate").decide(ASK),
    ]
    assert decided == [
        to(Arm.BASELINE, "mode baseline"),
        to(Arm.BASELINE, "mirror: 100 %", mirrored=True),
        to(Arm.BASELINE, "not in mirror: 0 %"),
        to(Arm.CANDIDATE, "split: 100 %"),
        to(Arm.BASELINE, "not in split: 0 %"),
        to(Arm.CANDIDATE, "mode candidate"),
    ]


@pytest.mark.parametrize("mode", ["mirror", "split", "candidate"])
@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (lambda: switched(Switch.OFF), "switch: off"),
        (lambda: switched(None), "switch: never set"),
        (lambda: Told(KnownState(rollout="k4")), "switch: not known"),
    ],
)
def test_without_a_switch_that_is_on_all_goes_to_the_baseline(
    mode: str, told: Callable[[], Told], reason: str
) -> None:
    """Off, never set and never known alike: nothing is mirrored either."""
    made = control(told(), mode=mode, share=100)
    assert made.decide(ASK) == to(Arm.BASELINE, reason)
    assert not made.candidate_allowed()


def test_a_flip_counts_for_the_next_decision() -> None:
    """The state is read anew for each request."""
    told = switched(Switch.ON)
    made = control(told, mode="candidate")
    assert made.decide(ASK).arm is Arm.CANDIDATE
    told.known = switched(Switch.OFF).known
    assert made.decide(ASK).arm is Arm.BASELINE


def test_the_ramp_is_the_share() -> None:
    """Before the first step it is 0 %; then the share of the newest step."""
    arms = [
        control(switched(Switch.ON, ramp=percent), mode="split", ramp={}).decide(ASK).reason
        for percent in (None, 0, 100)
    ]
    assert arms == ["not in split: 0 %", "not in split: 0 %", "split: 100 %"]


@pytest.mark.parametrize("path", ["/embeddings", "/responses", "/models"])
def test_only_generations_are_eligible(path: str) -> None:
    """What no draft speeds up stays at the baseline."""
    made = control(switched(Switch.ON), mode="candidate")
    wanted = to(Arm.BASELINE, "only generations are eligible")
    assert made.decide(replace(ASK, path=path)) == wanted


def test_rules_keep_requests_back_in_every_mode() -> None:
    """A rule to the baseline wins over the mode; one to the candidate leaves it the mode."""
    rules = [{"to": "baseline", "tools": True}, {"to": "candidate", "stream": True}]
    tools = facts_of(ASK.path, {"tools": [{}]}, {}, 0)
    stream = facts_of(ASK.path, {"stream": True}, {}, 0)
    for mode in ("mirror", "split", "candidate"):
        given = {"mode": mode, "share": 100, "rules": rules, "default": "baseline"}
        made = control(switched(Switch.ON), **given)
        assert made.decide(tools).reason == "rule 1: tools"
        assert made.decide(ASK) == to(Arm.BASELINE, "no rule matches")
        assert made.decide(stream).reason in ("mirror: 100 %", "split: 100 %", "mode candidate")


def test_rules_see_the_cohort() -> None:
    """A request's cohort is known before its rules are asked, and stands in the decision."""
    rules = [{"to": "baseline", "cohort": "json"}]
    made = control(switched(Switch.ON), mode="candidate", rules=rules)
    body = {"response_format": {"type": "json_object"}}
    decided = made.decide(facts_of(ASK.path, body, {}, 0))
    assert (decided.cohort, decided.reason) == ("json", "rule 1: cohort json")


def test_the_state_is_json() -> None:
    """It says mode, share, switch and ramp as they are used."""
    made = control(switched(Switch.ON, ramp=5), mode="split", ramp={})
    state = made.state()
    assert (state["mode"], state["share_percent"], state["candidate_allowed"]) == ("split", 5, True)
    assert state["switch"] == {
        "id": 1, "rollout": "k4", "state": "on", "reason": "r", "who": "w", "time_unix_ns": 1
    }  # fmt: skip
    assert control(switched(None), mode="candidate").state()["share_percent"] is None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    body=st.dictionaries(
        st.sampled_from(["model", "max_tokens", "temperature", "tools", "user", "prompt"]),
        st.none() | st.integers() | st.floats() | st.text(st.characters()) | st.lists(st.text()),
    ),
    headers=st.dictionaries(st.sampled_from(["x-session-id", "x-tier"]), st.text(st.characters())),
    path=st.sampled_from(["/chat/completions", "/completions", "/embeddings", ""]),
    mode=st.sampled_from(Mode),
    state=st.sampled_from([Switch.ON, Switch.OFF, None]),
)
def test_every_request_gets_a_decision(
    body: dict[str, Any], headers: dict[str, str], path: str, mode: Mode, state: Switch | None
) -> None:
    """Nothing raises, and the candidate is asked only while the switch is on."""
    rules = [
        {"to": "baseline", "model": "a*", "max_tokens": {"below": 9}},
        {"to": "baseline", "temperature": {"above": 1}, "header": {"x-tier": "g*"}},
        {"to": "candidate", "input_characters": {"at_most": 5}, "concurrency": {"below": 9}},
    ]
    made = control(switched(state), mode=mode.value, share=50, rules=rules)
    decided = made.decide(facts_of(path, body, headers, 3))
    asked = decided.arm is Arm.CANDIDATE or decided.mirrored
    assert made.candidate_allowed() or not asked
