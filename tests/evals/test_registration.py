"""Looks, retries and edits as a verdict reports them, through the real commands."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from otlp_bodies import export_request
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Generation, Speculation, encode
from draftgate import commands
from evals import policy as policies
from evals.policy.registration import changes, registration_of

POLICY = """
version: 1
name: small
prove:
  - {metric: e2e, stat: geomean_ratio, max: 1.1, scope: pooled}
  - {metric: failures, stat: diff, max: 0.05, scope: pooled}
"""
LOOSENED = POLICY.replace("max: 0.05", "max: 0.2").replace("max: 1.1", "max: 2")
SPECULATED = Speculation(method="draft_model", steps=5, draft_tokens=20, accepted_tokens=15)


@pytest.fixture
def at(tmp_path: Path) -> tuple[str, str]:
    """Return the options that name a new database, and write both policies beside it."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "loosened.yaml").write_text(LOOSENED)
    return ("--database", f"sqlite:///{tmp_path / 'dg.db'}")


def test_a_loosened_policy_is_named_and_strictly_inconclusive(
    tmp_path: Path, at: tuple[str, str]
) -> None:
    """Exit 0 comes with what changed; with --strict it is exit 3, and the reason is named."""
    assert run("register", "k4", "--policy", str(tmp_path / "policy.yaml"), *at)[0] == 0
    send(at[1], "k4", range(300))
    good, loose = (str(tmp_path / name) for name in ("policy.yaml", "loosened.yaml"))
    code, verdict = gate("k4", "--policy", good, "--strict", *at)
    assert (code, verdict["history"]["standing"]) == (0, "registered")
    code, verdict = gate("k4", "--policy", loose, *at)
    history = verdict["history"]
    assert (code, history["standing"], history["registered_by"]) == (0, "edited", "local")
    assert [line.partition(" (")[0] for line in history["changes"]] == [
        "prove[0].max: 1.1 → 2.0",
        "prove[1].max: 0.05 → 0.2",
    ]
    assert "not the one that was registered" in verdict["summary"]
    code, verdict = gate("k4", "--policy", loose, "--strict", *at)
    assert (code, verdict["outcome"]) == (3, "inconclusive")
    assert verdict["summary"] == "k4 is inconclusive: its policy is edited (--strict)."


def test_without_a_policy_the_registered_one_counts(tmp_path: Path, at: tuple[str, str]) -> None:
    """`gate` says which it judges by, a bundle of it verifies; of others `default` counts."""
    policy, zipped = str(tmp_path / "policy.yaml"), str(tmp_path / "b.zip")
    run("register", "k4", "--policy", policy, *at)
    for number, rollout in enumerate(("k4", "k5")):
        send(at[1], rollout, range(300), trace=1000 * number)
    code, said = run("gate", "k4", "--strict", "--bundle", zipped, "--no-post", *at)
    assert (code, "judged by the registered policy small" in said) == (0, True)
    assert run("verify", zipped)[0] == 0
    named, without = (gate("k4", *given, *at)[1] for given in (("--policy", policy), ()))
    assert without == named
    assert gate("k5", *at)[1]["policy_name"] == "default"
    assert "policy small" in run("watch", "k4", "--once", *at)[1]


def test_a_registration_after_the_first_pair_is_late(tmp_path: Path, at: tuple[str, str]) -> None:
    """It is kept as such, with exit 3, and is not strict enough; none at all is said, too."""
    policy = str(tmp_path / "policy.yaml")
    send(at[1], "k4", range(300))
    assert gate("k4", "--policy", policy, *at)[1]["history"]["standing"] == "unregistered"
    code, said = run("register", "k4", "--policy", policy, *at)
    assert (code, "registered after the first pair" in said) == (3, True)
    code, verdict = gate("k4", "--policy", policy, "--strict", *at)
    assert (code, verdict["history"]["standing"]) == (3, "late")


def test_looks_at_growing_data_are_counted(tmp_path: Path, at: tuple[str, str]) -> None:
    """The same data are the same look, and the same verdict; grown data are the next look."""
    policy = ("--policy", str(tmp_path / "policy.yaml"))
    looks = []
    for first in (0, 200, 250):
        send(at[1], "k4", range(first, first + 50))
        for _ in range(2):
            verdict = gate("k4", *policy, *at)[1]
            looks.append((verdict["history"]["look"], verdict["history"]["earlier"]))
    assert looks == [(1, 0), (1, 0), (2, 1), (2, 1), (3, 2), (3, 2)]
    assert any("3rd look at this rollout's growing data" in n for n in verdict["history"]["notes"])
    with Client.local(at[1]) as client:
        assert len(client.verdicts("k4")) == 3


def test_retries_are_named_and_judged_together(tmp_path: Path, at: tuple[str, str]) -> None:
    """An earlier rollout of the same candidate is named with its outcome; together it is none."""
    policy = ("--policy", str(tmp_path / "policy.yaml"))
    for number, (name, k) in enumerate((("a", 4), ("other", 8), ("b", 4))):
        send(at[1], name, range(200), k=k, trace=1000 * number)
        verdict = gate(name, *policy, *at)[1]
    history = verdict["history"]
    assert history["rollouts"] == [{"rollout": "a", "verdicts": 1, "outcome": "pass"}]
    assert any("draftgate gate b a" in note for note in history["notes"])
    code, pooled = gate("b", "a", *policy, *at)
    assert (code, pooled["pairs"], pooled["history"]["rollouts"]) == (0, 400, [])
    assert [(p["rollout"], p["pairs"]) for p in pooled["evidence"]] == [("b", 200), ("a", 200)]


def test_changes_are_told_by_rule_and_key() -> None:
    """A rule that is added or removed changes no other; sections are named by their keys."""
    before = policies.parse(POLICY, "p")
    now = policies.parse(
        POLICY.replace("  - {metric: e2e", "  - {metric: tpot").replace(
            "name: small", "name: other\nalpha: {pass: 0.1}\ncohorts: {min_n: 9}"
        ),
        "p",
    )
    said = changes(registration_of(before).text, now)
    assert said == (
        "prove[0] (e2e geomean_ratio, pooled, max 1.1): removed",
        "prove[0] (tpot geomean_ratio, pooled, max 1.1): added",
        *(line for line in said if line.startswith("live")),
        "alpha.pass: 0.05 → 0.1",
        "cohorts.min_n: 1 → 9",
        "name: small → other",
    )
    assert changes(registration_of(before).text, before) == ()


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(commands.app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def gate(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the verdict's document."""
    code, said = run("gate", *arguments, "--json")
    assert "{" in said, said
    return code, json.loads(said[said.index("{") :])


def send(url: str, rollout: str, numbers: Iterable[int], *, k: int = 4, trace: int = 0) -> None:
    """Store pairs of a candidate that is about as fast."""
    spans = []
    for number in numbers:
        for side, arm in enumerate(Arm):
            start_ns = 10**18 + number * 10**10
            spec = replace(SPECULATED, num_speculative_tokens=k)
            made = Generation(
                trace_id=f"{trace + number + 1:032x}",
                span_id=f"{side + 1:016x}",
                start_unix_ns=start_ns,
                end_unix_ns=start_ns + 10**9 + (number * 37 % 101 + side) * 10**6,
                ttft_s=0.1,
                output_tokens=20,
                input_tokens=10,
                request_model="m",
                rollout=rollout,
                arm=arm,
                cohort="chat",
                prompt_id=f"p{number:04}",
                repeat=0,
                speculation=spec if arm is Arm.CANDIDATE else None,
            )
            spans.append(encode(made))
    with Client.local(url) as client:
        client.post_traces(export_request(spans).SerializeToString())
