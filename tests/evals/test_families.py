"""Families of candidates: their levels, their grid, and what two changes do together."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_verdicts import made_verdict, registration
from otlp_bodies import export_request
from rich.console import Console
from typer.testing import CliRunner, Result

from collector.client import Client
from collector.columns import Column, Kind, Table
from collector.contract import (
    Arm,
    CohortAnswer,
    DivergedAnswers,
    Family,
    Finding,
    Generation,
    MayShip,
    Outcome,
    Reason,
    Role,
    Speculation,
    Verdict,
    encode,
)
from draftgate import commands
from evals import policy as policies
from evals.arms import report as arm_report
from evals.arms.divergence import divergence_rows
from evals.arms.grid import grid
from evals.arms.interaction import Interaction, interactions
from evals.policy.registration import policy_for, register_family, registration_for
from evals.stats.spending import ever_passes

FAMILY = Family(name="r", arms=("k4", "fp8", "both"), combined={"both": ("k4", "fp8")})
POLICY = """
version: 1
name: small
cohorts: {min_n: 20}
validity: {client_lag_p99_max_frac: 0.5, drift_p_min: 0.000001}
prove:
  - {metric: failures, stat: diff, max: 0.1, scope: pooled}
  - {metric: e2e, stat: geomean_ratio, max: 1.0, scope: cohort}
"""


@given(size=st.integers(2, 20), name=st.sampled_from(["default", "lossless", "demo"]))
def test_each_level_is_divided_by_the_size(size: int, name: str) -> None:
    """Passing, failing, losslessness, and all looks of a watch together."""
    plain, family = policies.shipped(name), Family(name="r", arms=tuple(map(str, range(size))))
    shared = plain.in_family(family)
    assert shared.alpha_pass == plain.alpha_pass / size
    assert shared.alpha_fail_family == plain.alpha_fail_family / size
    if plain.lossless is not None and shared.lossless is not None:
        assert shared.lossless.alpha == plain.lossless.alpha / size
    if shared.live is not None:
        total = ever_passes(shared.live.looks, shared.live.spend)
        assert total == pytest.approx(shared.alpha_pass, rel=0.01)
        assert total <= shared.alpha_pass * (1 + 1e-6)
    assert shared.in_family(family) == shared
    assert policies.parse(shared.canonical, "again") == shared
    assert shared.rules == plain.rules


@pytest.fixture
def at(tmp_path: Path) -> str:
    """Return a new database's URL, and write a policy."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    return f"sqlite:///{tmp_path / 'dg.db'}"


def test_no_policy_escapes_the_family(tmp_path: Path, at: str) -> None:
    """Whatever policy is named or registered later, it holds at the family's levels."""
    with Client.local(at) as client:
        register_family(client, FAMILY, policies.shipped("default"))
        client.register_policy("r-fp8", registration("{}"))
        for name in ("r", *FAMILY.rollouts):
            given = policy_for(client, name, str(tmp_path / "policy.yaml"))
            assert (given.policy.alpha_pass, given.policy.family) == (0.05 / 3, FAMILY)
            assert policies.parse(given.text, "text") == given.policy
        again = registration_for(client, "r-k4", policies.shipped("quality"))
        client.register_policy("r-k4", again)
        chosen = policy_for(client, "r-k4", None).policy
        assert (chosen.name, chosen.alpha_pass) == ("quality", 0.05 / 3)
        alone = policy_for(client, "other", str(tmp_path / "policy.yaml")).policy
    assert (alone.alpha_pass, alone.family) == (0.05, None)


def finding(cohort: str | None, ratio: float, **changes: Any) -> Finding:
    plain = Finding(
        metric="e2e",
        stat="geomean_ratio",
        cohort=cohort,
        role=Role.REPORT,
        outcome=Outcome.PASS,
        reason=None,
        bound="max",
        margin=1.0,
        unit="ratio",
        confidence=0.98,
        n=100,
        estimate=ratio,
        lower=ratio / 1.25,
        upper=ratio * 1.25,
        method="m",
        message="",
    )
    return replace(plain, **changes)


def judged(arm: str, ratio: float, answer: MayShip = MayShip.YES, **changes: Any) -> Verdict:
    return made_verdict(
        Outcome.PASS if answer is MayShip.YES else Outcome.FAIL,
        rollout=f"r-{arm}",
        findings=(finding("chat", ratio, **changes), finding(None, ratio)),
        cohorts=(CohortAnswer(cohort="chat", pairs=100, answer=answer, because="so"),),
    )


def best(*verdicts: Verdict | None) -> tuple[Outcome, str | None]:
    """Return a grid's outcome, and the best of the cohort."""
    found = grid(FAMILY, verdicts)
    assert [row.cohort for row in found.rows] == [None, "chat"]
    return found.outcome, found.rows[1].best


def test_the_best_passes_and_is_the_fastest_for_sure() -> None:
    """The greatest lower limit wins; a faster one that does not pass, or is not judged, cannot."""
    assert best(judged("k4", 0.5), judged("fp8", 0.6), judged("both", 0.7)) == ("pass", "k4")
    wide = judged("k4", 0.5, upper=0.9)
    assert best(wide, judged("fp8", 0.6), judged("both", 0.7)) == ("pass", "fp8")
    failing = judged("k4", 0.2, MayShip.NO)
    assert best(failing, judged("fp8", 0.6), None) == ("pass", "fp8")
    drifted = judged("k4", 0.2, outcome=Outcome.INCONCLUSIVE, reason=Reason.DRIFT)
    assert best(drifted, judged("fp8", 0.6), None) == ("pass", "fp8")
    few = judged("k4", 0.2, outcome=Outcome.INCONCLUSIVE, reason=Reason.TOO_FEW)
    assert best(few, judged("fp8", 0.6), None) == ("pass", "k4")


def test_the_baseline_stays_if_none_is_faster() -> None:
    """A limit at or below 1, or none, makes no best; the outcome needs every candidate to fail."""
    assert best(judged("k4", 0.9), judged("fp8", 1.2), None) == ("pass", None)
    assert best(judged("k4", 0.5, upper=None), None, None) == ("pass", None)
    failed = [judged(arm, 0.5, MayShip.NO) for arm in FAMILY.arms]
    assert best(*failed) == ("fail", None)
    assert best(*failed[:2], None) == ("inconclusive", None)


Made = Callable[..., Table]


@pytest.fixture(scope="session")
def table(
    side: Callable[..., Mapping[str, Any]], table_of: Callable[[Sequence[Any]], Table]
) -> Made:
    """Give what makes a candidate's pairs: its factor of the baseline's time, its wrong answers."""

    def make(
        seed: int, effect: float, bad: Sequence[int], prompts: Sequence[int] = range(400)
    ) -> Table:
        rng, base = np.random.default_rng(seed), 1 + np.random.default_rng(0).random(400)
        rows = []
        for i in prompts:
            took = float(base[i] * effect * rng.lognormal(0, 0.05))
            candidate = side(e2e_s=took, score_task_completion=float(i not in bad))
            baseline = side(e2e_s=float(base[i]), score_task_completion=float(i >= 10))
            row = {"prompt_id": f"p{i:03}", "cohort": ("chat", "code")[i % 2]}
            rows.append(row | {Arm.BASELINE: baseline, Arm.CANDIDATE: candidate})
        return table_of(rows)

    return make


def found_in(tables: dict[str, Table]) -> dict[tuple[str | None, str], Interaction]:
    chosen = policies.parse(POLICY, "policy").in_family(FAMILY)
    return {(one.cohort, one.metric): one for one in interactions(tables, FAMILY, chosen)}


def test_effects_that_multiply_do_not_interact(table: Made) -> None:
    """The limits hold 1 and 0, and no prompt is bad only together."""
    found = found_in(
        {"k4": table(1, 0.5, range(10)), "fp8": table(2, 0.8, range(12)),
         "both": table(3, 0.4, range(12))}
    )  # fmt: skip
    times, tasks = found[None, "e2e"], found[None, "task_completion"]
    assert times.lower is not None
    assert times.upper is not None
    assert times.lower < 1 < times.upper
    assert (times.n, times.confidence) == (400, pytest.approx(1 - 0.05 / 3))
    assert (tasks.estimate, tasks.only_together, tasks.only_one) == (0, 0, (0, 0))
    assert {cohort for cohort, _ in found} == {None, "chat", "code"}
    assert "tpot" not in {metric for _, metric in found}


def test_what_exists_only_together_is_found(table: Made) -> None:
    """Both together are 25 % slower than one by one, and fail tasks that neither fails alone."""
    alone = [*range(10), 50]
    found = found_in(
        {"k4": table(1, 0.5, alone), "fp8": table(2, 0.8, range(10)),
         "both": table(3, 0.5, [*range(10), *range(100, 140)])}
    )  # fmt: skip
    times, tasks = found[None, "e2e"], found[None, "task_completion"]
    assert times.estimate == pytest.approx(1.25, rel=0.02)
    assert times.lower is not None
    assert times.lower > 1
    assert tasks.estimate == pytest.approx(-39 / 400)
    assert tasks.upper is not None
    assert tasks.upper < 0
    assert (tasks.only_together, tasks.only_one) == (40, (1, 0))
    assert tasks.examples == ("p100", "p101", "p102", "p103", "p104")
    assert found["chat", "task_completion"].only_together == 20


def test_only_common_prompts_are_compared(table: Made) -> None:
    """A candidate that lacks prompts leaves them out; without a common one there is no finding."""
    tables = {"k4": table(1, 0.5, ()), "fp8": table(2, 0.8, ()),
              "both": table(3, 0.4, (), prompts=range(20))}  # fmt: skip
    few = found_in(tables)[None, "e2e"]
    assert (few.n, few.estimate, few.lower) == (20, None, None)
    apart = table(2, 0.8, (), prompts=range(200, 300))
    assert found_in(tables | {"fp8": apart}) == {}


def test_divergences_that_are_no_ties_are_counted(table: Made) -> None:
    """A greedy answer that diverges in the combined candidate alone is one found only together."""
    diverging = {"k4": {3: 0.9, 4: 0.1}, "fp8": {3: 0.9, 5: None}, "both": {3: 0.9, 4: 0.1, 6: 0.9}}
    tables = {}
    for number, (arm, gaps) in enumerate(diverging.items()):
        pairs = table(number, 0.5, (), range(40))
        position = [2 if i in gaps else -1 for i in range(40)]
        columns = {
            "divergence_compared": Column.of([20] * 39 + [-1], Kind.INT),
            "divergence_position": Column.of(position, Kind.INT),
            "divergence_gap": Column.of([gaps.get(i) for i in range(40)], Kind.FLOAT),
            "divergence_allowed": Column.of([0.25] * 40, Kind.FLOAT),
            "divergence_words": Column.nulls(40),
            "divergence_unknown": Column.nulls(40),
        }
        tables[arm] = pairs.with_columns(columns)
    found = found_in(tables)[None, "greedy_divergence"]
    assert (found.n, found.only_together, found.only_one) == (39, 1, (0, 1))
    assert found.examples == ("p006",)


def test_what_the_baseline_differs_from_itself_stands_beside_the_candidate() -> None:
    """By cohort and load, in a terminal and as Markdown; nothing if no texts were compared."""

    def differing(number: int, at: float | None) -> Verdict:
        pool = DivergedAnswers(
            cohort=None, in_flight=None, compared=1160, diverged=number,
            position_p25=at, position_p50=at, position_p75=at,
        )  # fmt: skip
        code = replace(pool, cohort="[co]de")
        loaded = replace(pool, in_flight=(8, 15), diverged=1, position_p50=None)
        return made_verdict(divergence=(pool, code, loaded))

    verdicts = {"again": differing(2, 12.5), "k4": differing(40, 3.0), "fp8": made_verdict()}
    assert list(divergence_rows(verdicts)) == [
        ("release", ("2 of 1,160 (at 12.5)", "40 of 1,160 (at 3)", "–")),
        ("[co]de", ("2 of 1,160 (at 12.5)", "40 of 1,160 (at 3)", "–")),
        ("8–15 in flight", ("1 of 1,160", "1 of 1,160", "–")),
    ]
    found = grid(Family(name="r", arms=tuple(verdicts)), list(verdicts.values()))
    console = Console(record=True, width=200)
    arm_report.print_grid(console, found, (), verdicts)
    assert "[co]de" in console.export_text()
    markdown = arm_report.to_markdown(found, (), verdicts)
    assert "| 8–15 in flight | 1 of 1,160 | 1 of 1,160 | – |" in markdown
    assert "median place" not in arm_report.to_markdown(found, (), {"k4": made_verdict()})


def send(client: Client, arm: str, factor: float, errors: int) -> None:
    """Store a candidate's rollout of 240 pairs."""
    rng = np.random.default_rng(len(arm))
    failed = rng.permutation(240)[:errors]
    spec = Speculation(method="draft_model", steps=5, draft_tokens=20, accepted_tokens=15)
    spans = []
    for i in range(240):
        for place, side in enumerate(Arm if i % 2 else reversed(Arm)):
            ours = side is Arm.CANDIDATE
            took = 1e9 * rng.lognormal(0, 0.05) * (factor if ours else 1)
            start = 10**18 + (2 * i + place) * 2 * 10**9
            spans.append(
                Generation(
                    trace_id=f"{1000 * FAMILY.arms.index(arm) + 2 * i + ours + 1:032x}",
                    span_id=f"{2 * i + ours + 1:016x}",
                    start_unix_ns=start,
                    end_unix_ns=start + int(took),
                    rollout=f"r-{arm}",
                    arm=side,
                    cohort="chat",
                    prompt_id=f"p{i}",
                    repeat=0,
                    output_tokens=20,
                    error_type="timeout" if ours and i in failed else None,
                    fingerprint="c" if ours else "b",
                    speculation=spec if ours else None,
                )
            )
    client.post_traces(export_request([encode(one) for one in spans]).SerializeToString())


def gate(*arguments: str) -> Result:
    return CliRunner().invoke(commands.app, ["gate", "r", *arguments])


@pytest.fixture
def sent(tmp_path: Path, at: str) -> tuple[str, str]:
    """Store a family of which k4 passes, fp8 fails and both is slower; return the options."""
    with Client.local(at) as client:
        register_family(client, FAMILY, policies.load(tmp_path / "policy.yaml"))
        for arm, factor, errors in (("k4", 0.5, 0), ("fp8", 0.6, 120), ("both", 0.8, 0)):
            send(client, arm, factor, errors)
    return ("--database", at)


def test_the_gate_judges_a_family_by_its_name(tmp_path: Path, sent: tuple[str, str]) -> None:
    """One grid, exit 0 as one passes, and a verdict, bundle and file for each candidate."""
    options = ("--bundle", str(tmp_path / "b.zip"), "--write", f"junit={tmp_path / 'g.xml'}")
    result = gate("--json", *options, *sent)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    release, chat = document["rows"]
    assert [one["answer"] for one in release["answers"]] == ["yes", "no", "yes"]
    assert (document["outcome"], chat["cohort"], chat["best"]) == ("pass", "chat", "k4")
    assert {one["metric"] for one in document["interactions"]} == {"e2e", "failures"}
    for arm in FAMILY.arms:
        verdict = document["verdicts"][arm]
        assert (verdict["rollout"], verdict["family"]["name"]) == (f"r-{arm}", "r")
        assert verdict["findings"][0]["confidence"] == pytest.approx(1 - 0.05 / 3)
        assert verdict["history"]["standing"] == "registered"
        verified = CliRunner().invoke(commands.app, ["verify", str(tmp_path / f"b-{arm}.zip")])
        assert verified.exit_code == 0, verified.output
        assert f"draftgate r-{arm}" in (tmp_path / f"g-{arm}.xml").read_text()
        with Client.local(sent[1]) as client:
            assert client.newest_verdict(f"r-{arm}") is not None


def test_the_grid_says_who_may_ship(sent: tuple[str, str]) -> None:
    """In a terminal: the best by cohort, and each candidate's reasons."""
    result = gate("--no-post", *sent)
    words = " ".join(result.stdout.split())
    assert result.exit_code == 0, result.output
    assert "r: k4, both may ship; the best:" in words
    assert "fp8: r-fp8 fails on 240 pairs" in words
    assert "both: beyond what k4 and fp8 do alone" in words
    assert "★" in words


def test_the_grid_is_a_table_in_markdown(sent: tuple[str, str]) -> None:
    """For a pull request: the sentence, a row per cohort, and the interactions."""
    lines = gate("--format", "markdown", "--no-post", *sent).stdout.splitlines()
    assert lines[0] == "## ✅ pass"
    assert lines[2].startswith("**r: k4, both may ship; the best: ")
    assert lines[4] == "| Scope | k4 | fp8 | both | Best |"
    chat = next(line for line in lines if line.startswith("| chat |"))
    assert chat.count("|") == 6
    assert re.match(r"\| chat \| ✅ 50 % faster e2e, 0\.50 \(", chat)
    assert chat.endswith("| k4 |")
    assert any(line.startswith("| both | all | failures | ") for line in lines)


def test_a_family_has_no_single_document_for_ci(sent: tuple[str, str]) -> None:
    """Formats of one verdict are refused, with what to do instead."""
    result = gate("--format", "junit", *sent)
    assert (result.exit_code, "draftgate gate r-k4" in result.stderr) == (2, True)
    explained = gate("--explain", *sent)
    assert (explained.exit_code, "chat" in explained.stdout) == (0, True)


@pytest.mark.parametrize(("errors", "code"), [(120, 1), (0, 3)])
def test_a_family_fails_if_every_candidate_fails(
    tmp_path: Path, at: str, errors: int, code: int
) -> None:
    """One that is undecided leaves the family undecided."""
    family = Family(name="r", arms=("k4", "fp8"))
    with Client.local(at) as client:
        register_family(client, family, policies.load(tmp_path / "policy.yaml"))
        send(client, "k4", 0.5, 120)
        send(client, "fp8", 1.0, errors)
    result = gate("--database", at)
    assert result.exit_code == code, result.output
