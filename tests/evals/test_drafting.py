"""Speculation that adapts to the load, told from the counts of answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from collector.contract import LoadAdaptationName, Verdict
from evals import policy as policies
from evals.evidence.columns import Evidence
from evals.evidence.drafting import AnswerDrafts, adaptations, at_loads
from evals.gate import decide
from evals.report.formats import to_markdown

SideOf = Callable[..., Mapping[str, Any]]
EvidenceOf = Callable[[Sequence[Mapping[str, Any]]], Evidence]
LOW, HIGH = (1, 1), (16, 31)
OFF, SHORTER = LoadAdaptationName.OFF_UNDER_LOAD, LoadAdaptationName.ADAPTIVE_DRAFT_LENGTH


def answers(
    load: tuple[int, int], *, k: int, idle: float = 0.0, n: int = 100
) -> list[AnswerDrafts]:
    """Return answers of ten steps each; of an idle share no token was drafted."""
    return [
        AnswerDrafts(load, 0 if i < n * idle else 10 * k, 0 if i < n * idle else 10)
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("high", "names"),
    [
        (answers(HIGH, k=4), []),
        (answers(HIGH, k=4, idle=0.8), [OFF]),
        (answers(HIGH, k=2), [SHORTER]),
        (answers(HIGH, k=2, idle=0.5), [OFF, SHORTER]),
        (answers(HIGH, k=0, idle=1.0), [OFF]),
        (answers(HIGH, k=4, idle=0.08), []),
        (answers(HIGH, k=2, idle=0.8, n=10), []),
    ],
)
def test_what_differs_between_loads_is_named(
    high: list[AnswerDrafts], names: list[LoadAdaptationName]
) -> None:
    """Answers without drafts, and shorter drafts, are two things; few answers show neither."""
    found = adaptations([*answers(LOW, k=4), *high])
    assert [one.name for one in found] == names
    assert all((one.low, one.high) == (LOW, HIGH) for one in found)


def test_drafts_that_vary_by_chance_are_not_named() -> None:
    """Prompt lookup drafts what it finds, at each load alike."""
    rng = np.random.default_rng(3)

    def drawn(load: tuple[int, int]) -> list[AnswerDrafts]:
        return [AnswerDrafts(load, int(rng.integers(0, 40)), 10) for _ in range(200)]

    assert not any(adaptations([*drawn(LOW), *drawn(HIGH)]) for _ in range(50))


def test_one_load_shows_nothing() -> None:
    """There is nothing to compare with."""
    assert at_loads(answers(LOW, k=4)) == ()
    assert adaptations(answers(LOW, k=4)) == ()


def test_a_verdict_says_that_speculation_turns_itself_off(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """In its text, and by load; answers that count nothing are left out."""
    rows = []
    for i in range(300):
        busy = i % 3 == 0
        drafts = {"spec_draft_tokens": 0 if busy else 40, "spec_steps": 0 if busy else 10}
        candidate = side(concurrency=20 if busy else 1, spec_accepted_tokens=0, **drafts)
        if i % 10 == 9:
            candidate = dict(candidate) | {"spec_draft_tokens": None}
        baseline = side(concurrency=20 if busy else 1)
        rows.append({"prompt_id": f"p{i:04}", "baseline": baseline, "candidate": candidate})
    rules = policies.parse(
        "version: 1\nname: t\nprove:\n- {metric: failures, stat: diff, max: 0.1, scope: pooled}\n",
        "t.yaml",
    )
    verdict: Verdict = decide(evidence_of(rows), rules, rollout="r")
    (found,) = verdict.load_adaptations
    assert (found.name, found.at_low, found.at_high) == (OFF, 0.0, 1.0)
    assert [(one.in_flight, one.answers, one.undrafted) for one in verdict.drafts_by_load] == [
        ((1, 1), 180, 0),
        ((16, 31), 90, 90),
    ]
    assert (
        "Speculation turns itself off under load: 100% of the candidate's answers drafted "
        "nothing with 16–31 in flight, 0% with 1 in flight." in to_markdown(verdict)
    )
