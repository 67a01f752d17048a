"""Greedy answers: their first divergence, ties, and the verdict."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Outcome
from draftgate.commands import app
from evals import bundle, policy
from evals.gate import decide
from evals.gate.lossless_cells import lossless_findings
from evals.lossless.greedy import Compared, compare, confirm, gap_noise, ulp

RULES = """
version: 1
name: lossless
alpha: {lossless: 0.01}
lossless: {greedy: {max_tie_gap: auto, hazard_ratio_max: 1.5}, sampled: {tolerance: 0.005}}
prove:
  - {metric: failures, stat: diff, max: 0.10, scope: pooled}
"""


@pytest.mark.parametrize(
    ("baseline", "candidate", "found"),
    [
        ([1, 2, 3], [1, 2, 3], Compared(3, None)),
        ([1, 2, 3], [1, 5, 3], Compared(2, 1, 2, 5)),
        ([1, 2, 3], [1, 2], Compared(3, 2, 3, None)),
        ([1, 2], [1, 2, 9], Compared(3, 2, None, 9)),
        ([], [], Compared(0, None)),
        ([], [4], Compared(1, 0, None, 4)),
    ],
)
def test_the_first_token_that_differs(
    baseline: list[int], candidate: list[int], found: Compared
) -> None:
    """An end is a token too; equal answers have no position."""
    assert compare(baseline, candidate) == found


def test_ties_are_two_steps_of_the_dtype() -> None:
    """bfloat16 steps by .125 at a logit of 20, so that a gap of .25 is a tie and .26 is not."""
    assert ulp(20.0, "bfloat16") == 0.125
    for gap, benign in ((0.25, True), (0.26, False)):
        found = confirm(np.array([20.0, 20.0 - gap]), 1, dtype="bfloat16", noise=0.0)
        assert (found.benign, found.allowed) == (benign, 0.25)
    assert confirm(np.array([20.0, 19.7]), 1, dtype="bfloat16", noise=0.4).benign
    assert not confirm(np.array([20.0, 19.7]), 1, dtype="float32", noise=0.0).benign
    assert gap_noise(np.array([])) == 0.0
    with pytest.raises(ValueError, match="got 'int8'"):
        ulp(1.0, "int8")


def evidence(evidence_of: Any, side: Any, gaps: list[float | None], equal: int, *,
             unknown: int = 0) -> Any:  # fmt: skip
    """Return pairs, of which some diverge with a gap, None where not rescored."""
    made = evidence_of([{"prompt_id": f"{i:03}", "baseline": side(), "candidate": side()}
                        for i in range(equal + len(gaps) + unknown)])  # fmt: skip
    n, equal = len(made), equal + unknown
    parted = np.arange(n) < len(gaps)
    known = [np.nan if g is None else g for g in gaps]
    from evals.evidence.columns import Divergences

    return replace(
        made,
        divergences=Divergences(
            compared=np.where(np.arange(n) < n - unknown, 50, -1),
            position=np.where(parted, 10, -1),
            gap=np.array([*known, *[np.nan] * equal]),
            allowed=np.full(n, 1e-5),
            words=np.array([f"prompt {i}" for i in range(n)], dtype=np.object_),
            unknown=np.array([None] * (n - unknown) + ["have no text"] * unknown, dtype=np.object_),
        ),
    )


@pytest.mark.parametrize(
    ("gaps", "equal", "outcome", "reason", "words"),
    [
        ([], 40, "pass", None, "40 of 40 are the same"),
        ([], 20, "inconclusive", "n", "needs 10 more pairs"),
        (
            [0.0, 1e-6],
            40,
            "pass",
            None,
            "2 are all ties under the baseline, such as prompt 0: pass",
        ),
        ([1e-6], 19, "inconclusive", "n", "19 of 20 are the same (95.0%), 1 is a tie under the"),
        ([None], 19, "inconclusive", "n", "1 differs, such as prompt 0: needs 10 more pairs"),
        ([0.0, 0.5], 40, "fail", None, "1 are no ties, such as prompt 1"),
        ([None], 40, "inconclusive", "aa", "without an A/A control"),
    ],
)
def test_what_the_verdict_says(
    evidence_of: Any, side: Any, gaps: list[Any], equal: int, outcome: str, reason: Any, words: str
) -> None:
    """A gap that is no tie fails; unknown gaps need a control; no divergence passes."""
    rules = policy.parse(RULES, "p.yaml")
    (found,) = lossless_findings(evidence(evidence_of, side, gaps, equal), None, rules)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert words in found.message


@pytest.mark.parametrize(("diverged", "outcome"), [(20, "pass"), (400, "fail")])
def test_black_boxes_are_held_against_equal_arms(
    evidence_of: Any, side: Any, diverged: int, outcome: str
) -> None:
    """Half as many divergences as between equal arms pass; ten times as many fail."""
    rules = policy.parse(RULES, "p.yaml")
    control = evidence(evidence_of, side, [None] * 40, 960)
    given = evidence(evidence_of, side, [None] * diverged, 1000 - diverged)
    (found,) = lossless_findings(given, control, rules)
    assert found.outcome == outcome
    assert found.estimate == pytest.approx(diverged / 40)


def test_answers_that_were_not_compared_do_not_pass(evidence_of: Any, side: Any) -> None:
    """At worst they differ: one is enough beside equal texts, and of a rate what exceeds it."""
    rules = policy.parse(RULES, "p.yaml")
    (found,) = lossless_findings(evidence(evidence_of, side, [], 40, unknown=1), None, rules)
    assert (found.outcome, found.reason) == ("inconclusive", "missing")
    assert "of the pairs that may be greedy 1 have no text; at worst they differ" in found.message
    control = evidence(evidence_of, side, [None] * 40, 960)
    for unknown, outcome in ((2, "pass"), (60, "inconclusive")):
        given = evidence(evidence_of, side, [None] * 20, 980, unknown=unknown)
        (found,) = lossless_findings(given, control, rules)
        assert found.outcome == outcome, found.message


def store(client, generation_of, otlp_of, candidates: dict[int, str | None]) -> None:
    """Store forty pairs that say the same, but for what some candidates say."""
    made = [
        replace(
            generation_of(2 * i + n + 1, candidates.get(i, "same") if n else "same"),
            rollout="k4", arm=arm, prompt_id=f"{i:02}", repeat=0, cohort="chat", temperature=0.0,
            ttft_s=0.1,
        )
        for i in range(40)
        for n, arm in tuple(enumerate(Arm))[:: 1 if i % 2 else -1]
    ]  # fmt: skip
    client.post_traces(otlp_of(made), content_type="application/json")
    client.close()


def test_the_command_names_answers_without_a_text(
    client: Client, generation_of: Any, otlp_of: Any, tmp_path: Path
) -> None:
    """One answer of forty whose text is not known keeps equal answers from passing."""
    store(client, generation_of, otlp_of, {7: None})
    (tmp_path / "p.yaml").write_text(RULES)
    database = f"sqlite:///{tmp_path / 'draftgate.db'}"
    arguments = ["k4", "--policy", str(tmp_path / "p.yaml"), "--database", database, "--json"]
    ran = CliRunner().invoke(app, ["gate", *arguments])
    (found,) = (f for f in json.loads(ran.output)["findings"] if f["metric"] == "greedy_divergence")
    assert (found["outcome"], found["reason"]) == ("inconclusive", "missing")
    assert "39 of 39 are the same" in found["message"]
    assert "1 have no text that was kept" in found["message"]


def test_a_policy_without_the_section_asks_nothing(evidence_of: Any, side: Any) -> None:
    """A policy without a `lossless` section yields no finding."""
    assert (
        lossless_findings(evidence(evidence_of, side, [], 40), None, policy.shipped("demo")) == ()
    )


def test_the_command_compares_texts_and_the_bundle_verifies(
    client: Client, generation_of: Any, otlp_of: Any, tmp_path: Path
) -> None:
    """Answers of a real store: one differs, so that a control is asked for; the zip re-derives."""
    store(client, generation_of, otlp_of, {0: "other"})
    file, zipped = tmp_path / "p.yaml", tmp_path / "b.zip"
    file.write_text(RULES)
    database = f"sqlite:///{tmp_path / 'draftgate.db'}"
    arguments = ["gate", "k4", "--policy", str(file), "--database", database, "--no-post"]
    ran = CliRunner().invoke(app, [*arguments, "--json", "--bundle", str(zipped)])
    assert ran.exit_code == 3, ran.output
    (found,) = (f for f in json.loads(ran.output)["findings"] if f["metric"] == "greedy_divergence")
    assert found["reason"] == "aa"
    assert "39 of 40 are the same (97.5%)" in found["message"]
    assert "prompt 00 at character 0: 'other' for 'same'" in found["message"]
    assert bundle.verify(zipped) == ()


def test_decide_includes_it(evidence_of: Any, side: Any) -> None:
    """A confirmed divergence fails the release, whatever else passes."""
    rules = policy.parse(RULES, "p.yaml")
    verdict = decide(evidence(evidence_of, side, [0.5], 60), rules, rollout="k4")
    assert verdict.outcome is Outcome.FAIL
    assert "no ties" in verdict.reasons[0]
