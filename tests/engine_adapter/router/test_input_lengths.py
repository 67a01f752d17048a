"""Bands of input tokens in the router: estimated from characters, and compared with counts."""

from typing import Any, NamedTuple

import pytest
import scripted_server as server
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from recorded_answers import FOLDER
from running_router import QUESTION, recording
from scripted_server import Route, Step

from collector.contract import Arm, InputBands, Switch, SwitchState
from engine_adapter.router.facts import facts_of
from engine_adapter.router.input_lengths import InputLengths, InputTokensSection
from engine_adapter.router.known_state import KnownState
from engine_adapter.router.opening import control_of
from engine_adapter.router.routes_file import Routes

UPSTREAMS = {"baseline": {"url": "http://b/v1"}, "candidate": {"url": "http://c/v1"}}
KNOWN = KnownState(
    rollout="k4",
    switch=SwitchState(id=1, rollout="k4", state=Switch.ON, reason="r", who="w", time_unix_ns=1),
    told_unix_ns=1,
)
BANDS = {"bands": (2000, 8000), "characters_per_token": 4.0}
LONG = "input_tokens:8000+"


class Told(NamedTuple):
    """What the collector told."""

    known: KnownState
    trouble: str | None = None


def lengths(**section: Any) -> InputLengths:
    return InputLengths(InputTokensSection.model_validate(BANDS | section))


@given(st.integers(0, 100_000), st.floats(0.5, 10))
def test_a_band_is_that_of_the_characters_over_the_ratio(characters: int, ratio: float) -> None:
    """By the function that the gate uses for counted tokens."""
    found = lengths(characters_per_token=ratio).band(characters)
    assert found == InputBands((2000, 8000)).of(characters / ratio)


def test_unknown_and_undeclared_are_two_things() -> None:
    """A request without text is of unknown length; without bands there are no bands."""
    assert lengths().band(None) == InputBands.UNKNOWN
    assert InputLengths(None).band(100) is None


def test_what_engines_count_is_compared() -> None:
    """With the ratio that the traffic has, and how often the band was another."""
    seen = lengths()
    seen.counted(8_000, 2_100)
    seen.counted(7_000, 2_000)
    seen.counted(400, 100)
    seen.counted(None, 100)
    seen.counted(100, None)
    assert seen.state() == {
        "characters_per_token": pytest.approx(15_400 / 4_200),
        "bands": [
            {"estimated": "input_tokens:0-1999", "counted": "input_tokens:0-1999", "answers": 1},
            {"estimated": "input_tokens:0-1999", "counted": "input_tokens:2000-7999", "answers": 1},
            {
                "estimated": "input_tokens:2000-7999",
                "counted": "input_tokens:2000-7999",
                "answers": 1,
            },
        ],
    }


def ask(text: str | None) -> dict[str, Any]:
    return {"messages": [] if text is None else [{"role": "user", "content": text}]}


@pytest.mark.parametrize(
    ("text", "arm", "reason"),
    [
        ("x" * 31_999, Arm.CANDIDATE, "mode candidate"),
        ("x" * 32_000, Arm.BASELINE, f"rule 1: cohort {LONG}"),
        (None, Arm.BASELINE, "rule 2: cohort input_tokens:unknown"),
    ],
)
def test_rules_name_bands_as_cohorts(text: str | None, arm: Arm, reason: str) -> None:
    """As `draftgate advise --routes` writes them; the request keeps its own cohort."""
    document = {
        "rollout": "k4",
        "upstreams": UPSTREAMS,
        "mode": "candidate",
        "input_tokens": BANDS,
        "rules": [
            {"to": "baseline", "cohort": LONG},
            {"to": "baseline", "cohort": InputBands.UNKNOWN},
        ],
    }
    control = control_of(Routes.model_validate(document), Told(KNOWN))
    decided = control.decide(facts_of("/chat/completions", ask(text), {}, 0))
    assert (decided.arm, decided.reason, decided.cohort) == (arm, reason, "chat")


@pytest.mark.parametrize("input_tokens", [None, {"bands": (500,), "characters_per_token": 4.0}])
def test_a_rule_names_a_declared_band(input_tokens: dict[str, Any] | None) -> None:
    """A band that the file does not declare would never match."""
    document: dict[str, Any] = {
        "rollout": "k4",
        "upstreams": UPSTREAMS,
        "rules": [{"to": "baseline", "cohort": LONG}],
    }
    if input_tokens is not None:
        document["input_tokens"] = input_tokens
    with pytest.raises(ValidationError, match=r"names the cohort input_tokens:8000\+"):
        Routes.model_validate(document)


def test_a_router_compares_its_estimates_with_what_engines_count() -> None:
    """`/router/state` has the traffic's characters per token, for the routes file."""
    data = (FOLDER / "vllm" / "draft.sse").read_bytes()
    stream = server.events([Step.of(data)])
    routes = {"rollout": "k4", "upstreams": UPSTREAMS, "mode": "baseline", "input_tokens": BANDS}
    control = control_of(Routes.model_validate(routes), Told(KNOWN))
    with (
        server.running(Route(stream)) as engine,
        recording(engine.url, engine.url, control) as (router, collected),
    ):
        assert router.ask(QUESTION | ask("x" * 236) | {"stream": True})[0] == 200
        collected.wait_for(1)
        assert router.state()["control"]["input_tokens"] == {
            "characters_per_token": 4.0,
            "bands": [
                {
                    "estimated": "input_tokens:0-1999",
                    "counted": "input_tokens:0-1999",
                    "answers": 1,
                }
            ],
        }
