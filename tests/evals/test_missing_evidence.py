"""Inputs that must not pass, each sent through a collector and judged by the real command."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from otlp_bodies import export_request
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Content, Generation, Score, Speculation, encode
from evals.cli.gate import app
from evals.policy import shipped_text

pytestmark = pytest.mark.filterwarnings("error")
PAIRS = 400
COHORTS = ("chat", "code")
POLICY = """
version: 1
name: evidence
cohorts: {min_n: 30}
prove:
  - {metric: tpot, stat: geomean_ratio, max: 1.00, scope: pooled}
  - {metric: ttft, stat: p95_ratio, max: 1.25, scope: pooled}
  - {metric: ttft, stat: p95_ratio, max: 1.50, scope: cohort}
  - {metric: task_completion, stat: diff, min: -0.02, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.05, scope: cohort}
  - {metric: failures, stat: diff, max: 0.02, scope: pooled}
guard:
  - {metric: output_tokens, stat: geomean_ratio, max: 1.10, scope: pooled}
"""
Spoil = Callable[["Rollout"], None]


class Rollout:
    """Generations and scores of a candidate that is faster and as good, to be spoilt."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.generations: dict[tuple[int, Arm], Generation] = {}
        self.scores: dict[tuple[int, Arm], Score] = {}
        for n in range(PAIRS):
            ttft_s, tpot_s = float(rng.uniform(0.08, 0.12)), float(rng.uniform(0.01, 0.012))
            right = n % 10 != 0
            for turn, arm in enumerate(Arm):
                pace = float(rng.uniform(0.7, 0.9)) if arm is Arm.CANDIDATE else 1.0
                self.generations[n, arm] = _generation(n, turn, arm, ttft_s, tpot_s * pace)
                self.score(n, arm, value=float(right))

    def score(self, n: int, arm: Arm, *, version: str = "1", **fields: Any) -> None:
        """Give an answer a score, or a reason for none."""
        one = self.generations[n, arm]
        self.scores[n, arm] = Score(
            trace_id=one.trace_id,
            span_id=one.span_id,
            metric="task_completion",
            evaluator="reference",
            version=version,
            **fields,
        )

    def change(self, arm: Arm, numbers: Any = range(PAIRS), **fields: Any) -> None:
        """Replace fields of an arm's answers."""
        for n in numbers:
            self.generations[n, arm] = replace(self.generations[n, arm], **fields)

    def speculate(self, numbers: Any = range(PAIRS), **fields: Any) -> None:
        """Replace what the candidate says of its speculation."""
        for n in numbers:
            one = self.generations[n, Arm.CANDIDATE]
            assert one.speculation is not None
            said = replace(one.speculation, **fields)
            self.generations[n, Arm.CANDIDATE] = replace(one, speculation=said)

    def drop(self, arm: Arm, numbers: Any) -> None:
        """Let answers never arrive."""
        for n in numbers:
            del self.generations[n, arm]
            self.scores.pop((n, arm), None)

    def of(self, cohort: str) -> list[int]:
        """Return the numbers of a cohort's pairs."""
        return [n for n in range(PAIRS) if COHORTS[n % 2] == cohort]


def _generation(n: int, turn: int, arm: Arm, ttft_s: float, tpot_s: float) -> Generation:
    number, start = 2 * n + turn + 1, (2 * n + (n + turn) % 2) * 10**9
    drafted = Speculation(
        method="draft_model", steps=8, draft_tokens=24, accepted_tokens=13, source="request"
    )
    return Generation(
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        start_unix_ns=10**18 + start,
        end_unix_ns=10**18 + start + round((ttft_s + 20 * tpot_s) * 1e9),
        request_model="target",
        response_model="target",
        max_tokens=64,
        temperature=0.0,
        seed=n,
        input_tokens=30 + n % 7,
        output_tokens=21 + (n + turn) % 3,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        rollout="k4",
        arm=arm,
        cohort=COHORTS[n % 2],
        prompt_id=f"p{n:04}",
        repeat=0,
        speculation=drafted if arm is Arm.CANDIDATE else None,
        fingerprint=f"{arm.value}-configuration",
        content=Content(reference="right"),
    )


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Give a function that stores a rollout and judges it: exit code, verdict, all that is told."""

    def run(
        rollout: Rollout, *, policy: str = POLICY, capture: bool = False
    ) -> tuple[int, dict[str, Any], str]:
        database, file = f"sqlite:///{tmp_path / 'd.db'}", tmp_path / "policy.yaml"
        file.write_text(shipped_text(policy) if "\n" not in policy else policy)
        with Client.local(database, capture_content=capture) as client:
            spans = [encode(one) for one in rollout.generations.values()]
            client.post_traces(export_request(spans).SerializeToString())
            client.post_scores(list(rollout.scores.values()))
        args = ["k4", "--policy", str(file), "--database", database]
        text = CliRunner().invoke(app, ["gate", *args], catch_exceptions=False)
        said = CliRunner().invoke(app, ["gate", *args, "--json"], catch_exceptions=False)
        assert text.exit_code == said.exit_code
        assert "Warning" not in text.output
        return said.exit_code, json.loads(said.stdout), text.output

    return run


def unscored(rollout: Rollout, numbers: Any, reason: str | None) -> None:
    """Leave pairs without scores: never evaluated, or with a reason."""
    for n in numbers:
        for arm in Arm:
            if reason is None:
                del rollout.scores[n, arm]
            else:
                rollout.score(n, arm, unscored_reason=reason)


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
    "back-dated reruns": (_rerun, "task completion"),
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
    assert named.startswith("geometric-mean output tokens, pooled (400 of 400 answered pairs")
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
REFUSED: dict[str, Any] = {
    "error_type": "connection_refused",
    "ttft_s": None,
    "tpot_s": None,
    "output_tokens": None,
    "speculation": None,
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
