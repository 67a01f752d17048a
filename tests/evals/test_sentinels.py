"""Answers to prompts that a run asks again and again: what changes, since when, and why."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.columns import Table
from collector.contract import Arm, Outcome, Reason, Role, SentinelAsk, Verdict, to_document
from evals import bundle, policy
from evals.evidence.pairs_table import from_table
from evals.evidence.sentinels import Preceding, series_of
from evals.gate import decide
from evals.gate.sentinel_cells import METRIC, sentinel_answers, state_obstacles
from evals.report.formats import to_markdown
from evals.stats.exchangeable import group_p, order_p

SECOND = 10**9
LOSSLESS = policy.parse(
    """
version: 1
name: lossless
validity: {speculation: optional}
lossless: {}
prove:
  - {metric: task_completion, stat: diff, min: -0.10, scope: pooled}
""",
    "lossless.yaml",
)
TableOf = Callable[[Sequence[Any]], Table]


def asks(arm: Arm, answers: str, *, sentinel: str = "s", launch: str | None = None) -> list[Any]:
    """Return one request every ten seconds; the second and each second after it has a neighbour."""
    return [
        SentinelAsk(
            sentinel=sentinel,
            arm=arm,
            number=i,
            start_unix_ns=(10 * i + 5) * SECOND,
            trace_id=f"{i:032x}",
            launch=launch,
            after="neighbour" if i % 2 else None,
            answer=None if answer == "!" else answer,
        )
        for i, answer in enumerate(answers)
    ]


@pytest.fixture
def judged(table_of: TableOf, side: Callable[..., Any]) -> Callable[..., Verdict]:
    """Judge a hundred good pairs, one a second, with these answers to sentinels."""
    rows = [
        {"prompt_id": f"p{i:03}", "cohort": "c"}
        | {arm: side(start_unix_ns=i * SECOND, score_task_completion=1.0, temperature=0.0)
           for arm in Arm}
        for i in range(1, 101)
    ]  # fmt: skip

    def of(baseline: str, candidate: str) -> Verdict:
        found = [*asks(Arm.BASELINE, baseline), *asks(Arm.CANDIDATE, candidate)]
        text = json.dumps([to_document(ask) for ask in found])
        table = table_of(rows).with_metadata({b"sentinels": text.encode()})
        return decide(from_table(table), LOSSLESS, rollout="r")

    return of


def cell(verdict: Verdict) -> Any:
    return next(f for f in verdict.findings if f.metric == METRIC)


def tasks(verdict: Verdict) -> Any:
    return next(f for f in verdict.findings if f.metric == "task_completion")


def test_a_poisoned_candidate_is_named_with_its_first_answer(
    judged: Callable[..., Verdict],
) -> None:
    """It fails the lossless cell, and no score passes; the request and its neighbour are named."""
    verdict = judged("a" * 20, "a" * 9 + "b" * 11)
    assert (cell(verdict).outcome, cell(verdict).role) == (Outcome.FAIL, Role.GUARD)
    assert (tasks(verdict).outcome, tasks(verdict).reason) == (Outcome.INCONCLUSIVE, Reason.STATE)
    (found,) = [one for one in verdict.sentinels if one.arm is Arm.CANDIDATE]
    assert (found.answers, found.changed, found.depends) == (20, 9, True)
    change = found.first_change
    assert change is not None
    assert (change.number, change.trace_id, change.after) == (10, f"{9:032x}", "neighbour")
    assert (change.requests, change.prompt_id) == (10, "p094")
    assert "directly after `neighbour`, which shares its prefix" in verdict.suspicions[0]
    assert "00:01:35 UTC" in to_markdown(verdict)


def test_a_poisoned_baseline_is_no_reference(judged: Callable[..., Verdict]) -> None:
    """Nothing passes and nothing fails: the candidate is not blamed."""
    verdict = judged("a" * 9 + "b" * 11, "a" * 20)
    assert cell(verdict).outcome is not Outcome.FAIL
    greedy = next(f for f in verdict.findings if f.metric == "greedy_divergence")
    assert (greedy.outcome, greedy.reason) == (Outcome.INCONCLUSIVE, Reason.STATE)
    assert tasks(verdict).reason is Reason.STATE
    assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [("a" * 20, "a" * 20), ("aabaaaabaaaaabaaaaba", "aaaabaaabaabaaaaaaab"), ("", "")],
)
def test_equal_arms_are_not_blamed(
    judged: Callable[..., Verdict], baseline: str, candidate: str
) -> None:
    """Whether no answer changes, or as many do in both arms, by rounding; or nothing was asked."""
    verdict = judged(baseline, candidate)
    assert tasks(verdict).outcome is Outcome.PASS
    assert all(f.outcome is not Outcome.FAIL for f in verdict.findings)
    assert not any("depend" in words for words in verdict.suspicions)


def test_an_answer_that_changes_after_its_neighbour_depends_on_it(
    judged: Callable[..., Verdict],
) -> None:
    """Although its changes are spread over the whole run."""
    verdict = judged("a" * 20, "ab" * 10)
    (found,) = [one for one in verdict.sentinels if one.arm is Arm.CANDIDATE]
    assert found.depends


def test_failed_requests_are_no_answers(judged: Callable[..., Verdict]) -> None:
    """They are left out, and with them the other arm's answer to the same request."""
    verdict = judged("a" * 20, "aaaa!!!!aaaa!!!!aaaa")
    assert [one.answers for one in verdict.sentinels] == [20, 12]
    assert cell(verdict).n == 12


def test_launches_are_compared_each_with_itself() -> None:
    """A restart may settle on another answer."""
    first = asks(Arm.CANDIDATE, "aaaa", launch="one")
    second = asks(Arm.CANDIDATE, "bbbb", launch="two")
    found = series_of([*first, *second], lambda _: Preceding(0, None))
    assert [(one.launch, int(one.changed.sum())) for one in found] == [("one", 0), ("two", 0)]


@pytest.mark.slow
@settings(max_examples=30)
@given(answers=st.text("ab", min_size=2, max_size=12))
def test_the_p_values_are_exact(answers: str) -> None:
    """Over all orders of the same answers, at most a share p has a p value as small as p."""
    marks = np.array([letter == "b" for letter in answers])
    p = order_p(marks)
    assert (p is None) == (not marks.any() or marks.all())
    if p is None:
        return
    drawn = np.random.default_rng(1)
    others = [order_p(drawn.permutation(marks)) or 1.0 for _ in range(200)]
    assert np.mean([other <= p for other in others]) <= p + 0.15
    assert group_p(marks, np.zeros(len(marks), dtype=bool)) is None


@pytest.mark.slow
def test_noise_alone_is_seldom_found() -> None:
    """Of three hundred runs whose answers change by chance, hardly one is found."""
    drawn = np.random.default_rng(7)
    found = sum(_noisy(drawn) for _ in range(300))
    assert found <= 9


def _noisy(drawn: np.random.Generator) -> bool:
    made = [
        ask
        for arm in Arm
        for sentinel in "st"
        for ask in asks(
            arm, "".join("ab"[int(x)] for x in drawn.random(16) < 0.3), sentinel=sentinel
        )
    ]
    series = series_of(made, lambda _: Preceding(0, None))
    return any(one.depends for one in sentinel_answers(series, LOSSLESS))


def test_a_bundle_holds_them(table_of: TableOf, side: Callable[..., Any], tmp_path: Any) -> None:
    """The verdict is derived again from the bundle; other answers have another hash."""
    rows = [{"prompt_id": f"p{i}", Arm.BASELINE: side(), Arm.CANDIDATE: side()} for i in range(9)]
    found = asks(Arm.CANDIDATE, "a" * 9 + "b" * 11)
    text = json.dumps([to_document(ask) for ask in found])
    table = table_of(rows).with_metadata({b"sentinels": text.encode()})
    inputs = bundle.Inputs("r", LOSSLESS.canonical, table)
    verdict = bundle.judge(inputs, "policy")
    bundle.write(tmp_path / "b.zip", inputs, verdict)
    assert bundle.verify(tmp_path / "b.zip") == ()
    plain = table.with_metadata({})
    assert from_table(plain).data_hash != verdict.data_hash
    assert [o.reason for o in state_obstacles(from_table(table).sentinels, LOSSLESS)] == [
        Reason.STATE
    ]
