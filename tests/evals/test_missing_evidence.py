"""Inputs that must not pass, each sent through a collector and judged by the real command."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spoilt_rollout import PAIRS, POLICY, REFUSED, Rollout, unscored
from typer.testing import CliRunner

from collector.contract import Arm, Speculation
from draftgate.commands import app
from evals.policy import shipped_text

pytestmark = pytest.mark.filterwarnings("error")
Spoil = Callable[["Rollout"], None]


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Give a function that stores a rollout and judges it: exit code, verdict, all that is told."""

    def run(
        rollout: Rollout, *, policy: str = POLICY, capture: bool = False
    ) -> tuple[int, dict[str, Any], str]:
        database, file = f"sqlite:///{tmp_path / 'd.db'}", tmp_path / "policy.yaml"
        file.write_text(shipped_text(policy) if "\n" not in policy else policy)
        rollout.store(database, capture=capture)
        args = ["gate", "k4", "--policy", str(file), "--database", database]
        text = CliRunner().invoke(app, args, catch_exceptions=False)
        said = CliRunner().invoke(app, [*args, "--json"], catch_exceptions=False)
        assert text.exit_code == said.exit_code
        assert "Warning" not in text.output
        return said.exit_code, json.loads(said.stdout), text.output

    return run


def _rerun(rollout: Rollout) -> None:
    """Answer 40 that were wrong once more, back-dated, and right."""
    wrong = range(0, PAIRS, 10)
    for n in wrong:
        rollout.score(n, Arm.BASELINE, value=1.0)
    for n in wrong:
        one = rollout.generations[n, Arm.CANDIDATE]
        again = replace(
            one,
            trace_id=f"{n + 9001:032x}",
            span_id=f"{n + 9001:016x}",
            start_unix_ns=one.start_unix_ns - 10**9,
        )
        rollout.generations[n + 10_000, Arm.CANDIDATE] = again
        rollout.score(n + 10_000, Arm.CANDIDATE, value=1.0)


CASES: dict[str, tuple[Spoil, str]] = {
    "a cohort never evaluated": (
        lambda r: unscored(r, r.of("code"), None),
        "in `code`",
    ),
    "a cohort unscored with reasons": (
        lambda r: unscored(r, r.of("code"), "no sandbox"),
        "no sandbox",
    ),
    "a cohort never evaluated, carrying unknown": (
        lambda r: (
            unscored(r, r.of("code"), None),
            [r.change(arm, content=None) for arm in Arm],
        ),
        "is not recorded",
    ),
    "a cohort of the workload that never ran": (
        lambda r: [r.change(arm, workload='{"chat": 200, "code": 200, "rag": 9}') for arm in Arm],
        "cohort rag has no pairs of 9 that the workload has",
    ),
    "5 % unscored": (
        lambda r: unscored(r, range(0, PAIRS, 20), "no sandbox"),
        "at their worst",
    ),
    "5 % never evaluated": (
        lambda r: unscored(r, range(0, PAIRS, 20), None),
        "at their worst",
    ),
    "no cohort": (
        lambda r: [r.change(arm, cohort=None) for arm in Arm],
        "no request names a cohort",
    ),
    "1 % without a TTFT": (
        lambda r: r.change(Arm.CANDIDATE, range(0, PAIRS, 16), ttft_s=None),
        "at their worst",
    ),
    "some missing": (
        lambda r: r.drop(Arm.CANDIDATE, range(0, PAIRS, 40)),
        "margin",
    ),
    "evaluator versions": (
        lambda r: [r.score(n, Arm.CANDIDATE, value=1.0, version="2") for n in range(PAIRS)],
        "several evaluators or versions",
    ),
    "fingerprints": (
        lambda r: r.change(Arm.CANDIDATE, range(200, PAIRS), fingerprint="other"),
        "configurations",
    ),
    "input tokens": (
        lambda r: r.change(Arm.CANDIDATE, input_tokens=5),
        "number of input tokens",
    ),
    "temperature": (lambda r: r.change(Arm.CANDIDATE, temperature=1.0), "the temperature"),
    "temperature in one arm": (
        lambda r: r.change(Arm.CANDIDATE, temperature=None),
        "the temperature",
    ),
    "max tokens": (lambda r: r.change(Arm.CANDIDATE, max_tokens=16), "limit of output tokens"),
    "seed": (lambda r: r.change(Arm.CANDIDATE, seed=7), "the seed"),
    "model": (
        lambda r: r.change(Arm.CANDIDATE, request_model="other", response_model="other"),
        "the model",
    ),
    "model that answered": (
        lambda r: r.change(Arm.CANDIDATE, response_model="other"),
        "the model",
    ),
    "cohort inside pairs": (
        lambda r: r.change(Arm.CANDIDATE, r.of("code"), cohort="chat"),
        "the cohort",
    ),
    "30 % fallbacks": (
        lambda r: r.change(Arm.CANDIDATE, range(0, PAIRS, 3), fallback=True),
        "another route",
    ),
    "drafted nothing": (
        lambda r: r.speculate(steps=0, draft_tokens=0, accepted_tokens=0),
        "drafted no token",
    ),
    "never speculated": (
        lambda r: r.change(Arm.CANDIDATE, speculation=None),
        "its answers say nothing of it",
    ),
    "never speculated, and of no configuration": (
        lambda r: r.change(Arm.CANDIDATE, speculation=None, fingerprint=None),
        "its answers say nothing of it",
    ),
    "a method without counts": (
        lambda r: r.change(Arm.CANDIDATE, speculation=Speculation(method="eagle")),
        "names a method and counts nothing",
    ),
    "30 % without speculation": (
        lambda r: r.change(Arm.CANDIDATE, range(0, PAIRS, 3), speculation=None),
        "say nothing of speculation",
    ),
    "lossy": (lambda r: r.speculate(lossless=False), "lossy"),
    "accepted above drafted": (
        lambda r: r.speculate(range(9), accepted_tokens=30),
        "more draft tokens",
    ),
    "back-dated reruns": (_rerun, "completed tasks"),
    "all output tokens absent": (
        lambda r: [r.change(arm, output_tokens=None, tpot_s=None) for arm in Arm],
        "no pair has a time per output token",
    ),
}


def test_the_rollout_as_it_is_passes(gate) -> None:
    """What the cases spoil is a candidate that passes, whether its text is kept or not."""
    code, verdict, _ = gate(Rollout())
    assert (code, verdict["outcome"]) == (0, "pass"), verdict["reasons"]
    assert verdict["not_judged"] == []


def test_a_guard_without_evidence_is_named(gate) -> None:
    """A pass says in its headline which guards could not be judged."""
    rollout = Rollout()
    for arm in Arm:
        rollout.change(arm, output_tokens=None)
    code, verdict, text = gate(rollout)
    assert (code, verdict["outcome"]) == (0, "pass"), verdict["reasons"]
    (named,) = verdict["not_judged"]
    assert named.startswith("geometric-mean output tokens pooled (400 of 400 answered pairs")
    assert "Not judged: geometric-mean output tokens" in verdict["summary"]
    assert "Not judged" in text


def test_pairs_without_a_cohort_are_named(gate) -> None:
    """What no cohort's cell counts is said, not left out."""
    rollout = Rollout()
    for arm in Arm:
        rollout.change(arm, range(50), cohort=None)
    _, verdict, _ = gate(rollout)
    assert "50 of 400 name no cohort" in verdict["summary"]


SMALL = 60


def _small() -> Rollout:
    rollout = Rollout()
    for arm in Arm:
        rollout.drop(arm, range(SMALL, PAIRS))
    return rollout


HARM: dict[str, Spoil] = {
    "refuses 60 of 60": lambda r: r.change(Arm.CANDIDATE, range(SMALL), **REFUSED),
    "dies in the middle": lambda r: r.change(Arm.CANDIDATE, range(35, SMALL), **REFUSED),
    "is never heard of again": lambda r: r.drop(Arm.CANDIDATE, range(35, SMALL)),
    "gives answers that are worth nothing": lambda r: [
        r.score(n, Arm.CANDIDATE, value=0.0) for n in range(SMALL)
    ],
}


@pytest.mark.parametrize("policy", ["default", POLICY])
@pytest.mark.parametrize("name", HARM)
def test_harm_that_is_proved_fails(gate, name, policy) -> None:
    """A candidate that is dead fails, however few pairs there are and whatever else is wrong."""
    rollout = _small()
    HARM[name](rollout)
    code, verdict, _ = gate(rollout, policy=policy)
    assert (code, verdict["outcome"]) == (1, "fail"), verdict["reasons"]


@pytest.mark.parametrize("name", CASES)
def test_it_does_not_pass(gate, name) -> None:
    """Nothing passes for want of evidence, or on that of something else; the verdict says why."""
    spoil, why = CASES[name]
    rollout = Rollout()
    spoil(rollout)
    code, verdict, _ = gate(rollout)
    told = " ".join([verdict["summary"], *verdict["reasons"]])
    assert (code, verdict["outcome"]) != (0, "pass"), told
    assert why in told
