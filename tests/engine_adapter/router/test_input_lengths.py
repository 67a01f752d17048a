"""Bands of input tokens in the router: estimated from characters, and compared with counts."""

from typing import Any

import pytest
import scripted_server as server
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from recorded_answers import FOLDER
from running_router import QUESTION, recording
from scripted_server import Route, Step
from told_controls import control, switched

from collector.contract import Arm, InputBands, Switch
from engine_adapter.router.facts import facts_of
from engine_adapter.router.input_lengths import InputLengths, InputTokensSection

BANDS = {"bands": (2000, 8000), "characters_per_token": 4.0}
LONG = "input_tokens:8000+"


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
    rules = [{"to": "baseline", "cohort": cohort} for cohort in (LONG, InputBands.UNKNOWN)]
    on = switched(Switch.ON)
    decided = control(on, mode="candidate", input_tokens=BANDS, rules=rules).decide(
        facts_of("/chat/completions", ask(text), {}, 0)
    )
    assert (decided.arm, decided.reason, decided.cohort) == (arm, reason, "chat")


@pytest.mark.parametrize("declared", [{}, {"input_tokens": BANDS | {"bands": (500,)}}])
def test_a_rule_names_a_declared_band(declared: dict[str, Any]) -> None:
    """A band that the file does not declare would never match."""
    rules = [{"to": "baseline", "cohort": LONG}]
    with pytest.raises(ValidationError, match=r"names the cohort input_tokens:8000\+"):
        control(switched(Switch.ON), rules=rules, **declared)


def test_a_router_compares_its_estimates_with_what_engines_count() -> None:
    """`/router/state` has the traffic's characters per token, for the routes file."""
    data = (FOLDER / "vllm" / "draft.sse").read_bytes()
    stream = server.events([Step.of(data)])
    by_bands = control(switched(Switch.ON), mode="baseline", input_tokens=BANDS)
    with (
        server.running(Route(stream)) as engine,
        recording(engine.url, engine.url, by_bands) as (router, collected),
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
