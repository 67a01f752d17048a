"""More kinds of evidence that must not pass, each through a collector and the real command."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spoilt_rollout import PAIRS, REFUSED, Rollout, judged, unscored
from typer.testing import CliRunner

from collector.contract import Arm
from draftgate import commands

pytestmark = pytest.mark.filterwarnings("error")
BASELINE, CANDIDATE = Arm.BASELINE, Arm.CANDIDATE
ALL, SOME, HALF, EVEN = range(PAIRS), range(0, PAIRS, 50), range(200, PAIRS), range(0, PAIRS, 2)
UNDRAFTED = {"steps": 0, "draft_tokens": 0, "accepted_tokens": 0}
Spoil = Callable[[Rollout], Any]


def _failed_rerun(rollout: Rollout) -> None:
    """Answer once more, and well, what the candidate failed at."""
    for n in range(0, PAIRS, 10):
        one = rollout.generations[n, CANDIDATE]
        rollout.change(CANDIDATE, [n], **REFUSED)
        ids = {"trace_id": f"{n + 9001:032x}", "span_id": f"{n + 9001:016x}"}
        rollout.generations[n + 10_000, CANDIDATE] = replace(one, **ids)
        rollout.score(n + 10_000, CANDIDATE, value=1.0)


def _moved(rollout: Rollout, seconds: int, numbers: Iterable[int] = ALL) -> None:
    for n in numbers:
        one = rollout.generations[n, CANDIDATE]
        by_ns = seconds * 10**9
        rollout.generations[n, CANDIDATE] = replace(
            one, start_unix_ns=one.start_unix_ns + by_ns, end_unix_ns=one.end_unix_ns + by_ns
        )


def _backwards(rollout: Rollout) -> None:
    for n in ALL:
        start = rollout.generations[n, CANDIDATE].start_unix_ns
        rollout.change(CANDIDATE, [n], end_unix_ns=start - 1)


def _backwards_in_part(rollout: Rollout) -> None:
    for n in range(0, PAIRS, 10):
        start = rollout.generations[n, CANDIDATE].start_unix_ns
        rollout.change(CANDIDATE, [n], end_unix_ns=start - 1)


def _at_once(rollout: Rollout) -> None:
    for n in ALL:
        start = rollout.generations[n, CANDIDATE].start_unix_ns
        rollout.change(CANDIDATE, [n], end_unix_ns=start)


def _short(rollout: Rollout, numbers: Iterable[int]) -> None:
    """End answers after five tokens, of which three were drafted; they score as ever."""
    rollout.change(CANDIDATE, numbers, output_tokens=5)
    rollout.speculate(numbers, steps=2, draft_tokens=6, accepted_tokens=3)


def _first_sixty_empty(rollout: Rollout) -> None:
    for arm in Arm:
        rollout.drop(arm, range(60, PAIRS))
    rollout.change(CANDIDATE, range(60), output_tokens=0, ttft_s=None, tpot_s=None)
    for n in range(60):
        rollout.scores.pop((n, CANDIDATE))


def _one_prompt(rollout: Rollout) -> None:
    for (n, arm), one in rollout.generations.items():
        rollout.generations[n, arm] = replace(one, prompt_id="p", repeat=n)


def _by_another(rollout: Rollout) -> None:
    for n in range(200):
        one = rollout.scores[n, CANDIDATE]
        rollout.scores[n, CANDIDATE] = replace(one, evaluator="other")


CASES: dict[str, Spoil] = {
    "no TTFT in one arm": lambda r: r.change(CANDIDATE, ttft_s=None),
    "no TTFT in one cohort": lambda r: r.change(CANDIDATE, r.of("code"), ttft_s=None),
    "no TTFT of a cohort's baseline": lambda r: r.change(BASELINE, r.of("code"), ttft_s=None),
    "no TPOT in one arm": lambda r: r.change(CANDIDATE, tpot_s=None),
    "no TPOT in 2 %": lambda r: r.change(CANDIDATE, SOME, tpot_s=None),
    "TPOT below 0": lambda r: r.change(CANDIDATE, tpot_s=-1.0),
    "TPOT of 0": lambda r: r.change(CANDIDATE, tpot_s=0.0),
    "TPOT that is no number": lambda r: r.change(CANDIDATE, tpot_s=math.nan),
    "TTFT below 0": lambda r: r.change(CANDIDATE, ttft_s=-0.1),
    "TTFT of 0": lambda r: r.change(CANDIDATE, ttft_s=0.0),
    "TTFT that is no number": lambda r: r.change(CANDIDATE, ttft_s=math.nan),
    "scores of the baseline alone": lambda r: [r.scores.pop((n, CANDIDATE)) for n in ALL],
    "scores of the candidate alone": lambda r: [r.scores.pop((n, BASELINE)) for n in ALL],
    "an evaluator that crashes on the candidate": lambda r: [
        r.score(n, CANDIDATE, unscored_reason="crashed") for n in range(1, PAIRS, 20)
    ],
    "an evaluator that crashes on a cohort": lambda r: unscored(r, r.of("code"), "crashed"),
    "two evaluators": _by_another,
    "two versions in both arms": lambda r: [
        r.score(n, arm, value=1.0, version="2") for n in range(200) for arm in Arm
    ],
    "a baseline in two configurations": lambda r: r.change(BASELINE, HALF, fingerprint="x"),
    "configurations half told": lambda r: r.change(CANDIDATE, HALF, fingerprint=None),
    "one pair of other prompts": lambda r: r.change(CANDIDATE, [5], input_tokens=999),
    "two pairs of other temperature": lambda r: r.change(CANDIDATE, [3, 4], temperature=0.7),
    "no seed in one arm": lambda r: r.change(CANDIDATE, seed=None),
    "no limit of tokens in one arm": lambda r: r.change(CANDIDATE, max_tokens=None),
    "fallbacks of the baseline": lambda r: r.change(BASELINE, range(0, PAIRS, 3), fallback=True),
    "fallbacks alone": lambda r: r.change(CANDIDATE, fallback=True),
    "2 % fallbacks": lambda r: r.change(CANDIDATE, SOME, fallback=True),
    "failures answered in a rerun": _failed_rerun,
    "errors in 3 % of one arm": lambda r: r.change(CANDIDATE, range(0, PAIRS, 33), **REFUSED),
    "errors in half of both arms": lambda r: [
        r.change(arm, range(0, PAIRS, 2), **REFUSED) for arm in Arm
    ],
    "a clock an hour ahead": lambda r: _moved(r, 3600),
    "ends before starts": _backwards,
    "a baseline that lacks 10 %": lambda r: r.drop(BASELINE, range(0, PAIRS, 10)),
    "a cohort of the baseline alone": lambda r: r.drop(CANDIDATE, r.of("code")),
    "a cohort of the candidate alone": lambda r: r.drop(BASELINE, r.of("code")),
    "a baseline that is never right": lambda r: [r.score(n, BASELINE, value=0.0) for n in ALL],
    "one lossy answer": lambda r: r.speculate([7], lossless=False),
    "a cohort that says nothing of speculation": lambda r: r.change(
        CANDIDATE, r.of("code"), speculation=None
    ),
    "no cohort in one arm": lambda r: r.change(CANDIDATE, cohort=None),
    "no answering model in one arm": lambda r: [
        r.change(BASELINE, response_model="m"),
        r.change(CANDIDATE, response_model=None),
    ],
    "fewer than no draft tokens accepted": lambda r: r.speculate([7], accepted_tokens=-3),
    "a clock that half of the candidate has 400 s ahead": lambda r: _moved(r, 400, EVEN),
    "a candidate whose second half ran 400 s later": lambda r: _moved(r, 400, HALF),
    "answers that end after five tokens": lambda r: _short(r, ALL),
    "answers of one token that still score": lambda r: r.change(CANDIDATE, output_tokens=1),
    "every fifth answer ends early": lambda r: _short(r, range(0, PAIRS, 5)),
    "a tenth of one cohort's answers end early": lambda r: _short(r, r.of("code")[::10]),
    "a twentieth of the answers are empty and still score": lambda r: r.change(
        CANDIDATE, range(0, PAIRS, 20), output_tokens=0
    ),
    "one answer that drafts": lambda r: r.speculate(range(1, PAIRS), **UNDRAFTED),
    "eight answers that draft": lambda r: r.speculate(range(8, PAIRS), **UNDRAFTED),
    "no draft token accepted": lambda r: r.speculate(accepted_tokens=0),
    "more tokens accepted than the answer has": lambda r: r.speculate(
        draft_tokens=400, accepted_tokens=300
    ),
    "two methods of speculation": lambda r: r.speculate(EVEN, method="ngram"),
    "a baseline that refuses a tenth": lambda r: r.change(BASELINE, range(0, PAIRS, 10), **REFUSED),
    "a baseline that refuses half": lambda r: r.change(BASELINE, EVEN, **REFUSED),
    "baseline times in milliseconds": lambda r: [
        r.change(BASELINE, [n], ttft_s=100.0, tpot_s=10.0) for n in ALL
    ],
    "a tenth of the candidate ends before it starts": _backwards_in_part,
    "answers that end as they start": _at_once,
    "a candidate of the next pair's prompts": lambda r: [
        r.change(CANDIDATE, [n], prompt_id=f"p{(n + 2) % PAIRS:04}") for n in ALL
    ],
    "cohorts exchanged in one arm": lambda r: [
        r.change(CANDIDATE, r.of("code"), cohort="x"),
        r.change(CANDIDATE, r.of("chat"), cohort="code"),
    ],
    "another limit of tokens in every seventh": lambda r: r.change(
        CANDIDATE, range(0, PAIRS, 7), max_tokens=16
    ),
    "counts of tokens below 0": lambda r: r.change(CANDIDATE, output_tokens=-5),
    "no prompt ids": lambda r: [r.change(arm, prompt_id=None) for arm in Arm],
    "one prompt": _one_prompt,
}


@pytest.mark.parametrize("name", CASES)
def test_it_does_not_pass(tmp_path: Path, name: str) -> None:
    """It is inconclusive or fails, by exit code and verdict, and the verdict gives reasons."""
    rollout = Rollout()
    CASES[name](rollout)
    code, verdict = judged(rollout, tmp_path)
    assert code == {"fail": 1, "inconclusive": 3}[verdict["outcome"]]
    assert verdict["reasons"]


FAILS: dict[str, Spoil] = {
    "60 of 60 answers are empty and unscored": _first_sixty_empty,
    "empty answers that score well": lambda r: r.change(CANDIDATE, output_tokens=0),
    "every answer times out": lambda r: r.change(CANDIDATE, **REFUSED | {"error_type": "timeout"}),
    "a cohort never arrives": lambda r: r.drop(CANDIDATE, r.of("code")),
    "empty answers that score nothing": lambda r: [
        (r.change(CANDIDATE, [n], output_tokens=0), r.score(n, CANDIDATE, value=0.0)) for n in ALL
    ],
    "wrong answers that count other tokens": lambda r: [
        (r.change(CANDIDATE, [n], input_tokens=3), r.score(n, CANDIDATE, value=0.0)) for n in ALL
    ],
}


@pytest.mark.parametrize("name", FAILS)
def test_proved_harm_fails(tmp_path: Path, name: str) -> None:
    """Whatever else is wrong."""
    rollout = Rollout()
    FAILS[name](rollout)
    code, verdict = judged(rollout, tmp_path)
    assert (code, verdict["outcome"]) == (1, "fail"), verdict["summary"]


def test_a_cohort_without_drafts_is_named(tmp_path: Path) -> None:
    """A candidate that drafts in one cohort alone may pass, and the verdict says so."""
    rollout = Rollout()
    rollout.speculate(rollout.of("code"), steps=0, draft_tokens=0, accepted_tokens=0)
    _, verdict = judged(rollout, tmp_path)
    assert verdict["not_judged"] == ["whether speculation serves `code`, in which none was drafted"]


@pytest.mark.parametrize(
    "spoil",
    [FAILS["every answer times out"], CASES["no TTFT in one arm"], CASES["one prompt"]],
    ids=["timeouts", "no TTFT", "one prompt"],
)
@pytest.mark.parametrize("command", ["gate", "watch --once", "advise"])
def test_no_warning_reaches_a_user(tmp_path: Path, spoil: Spoil, command: str) -> None:
    """Each command ends as ever although a warning is an error here, as under `-W error`."""
    rollout = Rollout()
    spoil(rollout)
    database = f"sqlite:///{tmp_path / 'd.db'}"
    rollout.store(database)
    name, *options = command.split()
    ran = CliRunner().invoke(commands.app, [name, "k4", *options, "--database", database])
    assert ran.exit_code in (0, 1, 3), ran.output
    assert "Warning" not in ran.output


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit", "github"])
def test_no_warning_reaches_a_reader(tmp_path: Path, form: str) -> None:
    """Every form of a verdict on dead, empty and timeless answers is printed, likewise."""
    rollout = Rollout()
    rollout.change(CANDIDATE, HALF, **REFUSED)
    rollout.change(CANDIDATE, range(100, 200), output_tokens=0)
    rollout.change(CANDIDATE, range(100), ttft_s=None, tpot_s=None)
    database = f"sqlite:///{tmp_path / 'd.db'}"
    rollout.store(database)
    judge = ["gate", "k4", "--format", form, "--database", database, "--no-post"]
    ran = CliRunner().invoke(commands.app, judge)
    assert ran.exit_code == 1, ran.output
    assert "Warning" not in ran.output
