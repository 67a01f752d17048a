"""Bands of input tokens: cohorts that are derived from a request's length."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import InputBands, Outcome, Reason, bands_named
from evals import policy as policies
from evals.errors import EvidenceError, PolicyError
from evals.evidence.columns import Evidence
from evals.gate import decide

SideOf = Callable[..., Mapping[str, Any]]
EvidenceOf = Callable[[Sequence[Mapping[str, Any]]], Evidence]

POLICY = """version: 1
name: t
cohorts: {input_tokens: [2000, 8000]}
prove:
  - {metric: task_completion, stat: diff, min: -0.05, scope: cohort}
"""
SHORT, MIDDLE, LONG = "input_tokens:0-1999", "input_tokens:2000-7999", "input_tokens:8000+"

cuts = st.lists(st.integers(1, 100_000), min_size=1, max_size=6, unique=True).map(sorted)


@pytest.mark.parametrize(
    ("tokens", "band"),
    [
        (0, SHORT),
        (1999, SHORT),
        (1999.9, SHORT),
        (2000, MIDDLE),
        (7999, MIDDLE),
        (8000, LONG),
        (10**6, LONG),
        (None, InputBands.UNKNOWN),
    ],
)
def test_a_length_is_in_one_band(tokens: float | None, band: str) -> None:
    """The lower end belongs to the band; unknown is a band of its own."""
    assert InputBands((2000, 8000)).of(tokens) == band


@given(cuts, st.integers(0, 200_000))
def test_every_length_is_between_its_bands_ends(cuts: list[int], tokens: int) -> None:
    """And the names give the bands back."""
    bands = InputBands(cuts)
    (band,) = [one for one in bands.bands if one.name == bands.of(tokens)]
    assert band.first <= tokens
    assert band.last is None or tokens <= band.last
    named = bands_named(("chat", *bands.names, InputBands.UNKNOWN))
    assert named is not None
    assert named.cuts == bands.cuts


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("[2000, 2000]", "cohorts.input_tokens: wanted growing numbers of input tokens"),
        ("[]", "cohorts.input_tokens: wanted growing numbers of input tokens"),
        ("[0, 5]", "wanted growing numbers of input tokens above 0"),
        ("2000", "wanted a list"),
    ],
)
def test_bands_are_checked(given: str, words: str) -> None:
    """A policy's bands are growing numbers above 0."""
    with pytest.raises(PolicyError, match=words):
        policies.parse(POLICY.replace("[2000, 8000]", given), "t.yaml")


def rows_of(side: SideOf, lengths: Mapping[int | None, tuple[int, float]]) -> list[dict[str, Any]]:
    """Return pairs: by length their number, and the share of tasks that the candidate loses."""
    rows = []
    for tokens, (count, lost) in lengths.items():
        for i in range(count):
            worse = i < count * lost
            arms = {
                arm: side(input_tokens=tokens, e2e_s=1 + len(rows) / 1e4, score_task_completion=ok)
                for arm, ok in (("baseline", 1.0), ("candidate", 0.0 if worse else 1.0))
            }
            rows.append({"prompt_id": f"p{len(rows):05}", "cohort": "chat", **arms})
    return rows


def judged(evidence: Evidence, text: str = POLICY):
    return decide(evidence, policies.parse(text, "t.yaml"), rollout="r")


def test_harm_of_long_contexts_fails_their_band(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Every rule by cohort makes a cell for each band, beside the cohorts that requests name."""
    rows = rows_of(side, {100: (2_000, 0.0), 2_000: (300, 0.0), 20_000: (100, 0.3)})
    verdict = judged(evidence_of(rows))
    assert {f.cohort: f.outcome for f in verdict.findings} == {
        "chat": Outcome.PASS,
        SHORT: Outcome.PASS,
        MIDDLE: Outcome.PASS,
        LONG: Outcome.FAIL,
    }
    assert [(one.cohort, one.pairs) for one in verdict.cohorts] == [
        ("chat", 2_400),
        (SHORT, 2_000),
        (MIDDLE, 300),
        (LONG, 100),
    ]
    assert {row.cohort for row in verdict.latency} == {None, "chat", SHORT, MIDDLE, LONG}
    assert {row.cohort for row in verdict.acceptance} == {None, "chat", SHORT, MIDDLE, LONG}


def test_unknown_lengths_are_a_band(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Requests that no arm counted are judged by themselves; a few are set aside, and named."""
    some = judged(evidence_of(rows_of(side, {100: (400, 0), 3_000: (400, 0), 9_000: (400, 0),
                                             None: (100, 0.5)})))  # fmt: skip
    assert {f.cohort: f.outcome for f in some.findings}[InputBands.UNKNOWN] is Outcome.FAIL
    few = judged(evidence_of(rows_of(side, {100: (400, 0), 3_000: (400, 0), 9_000: (400, 0),
                                            None: (3, 0)})))  # fmt: skip
    assert few.outcome is Outcome.PASS
    assert [(one.cohort, one.pairs) for one in few.set_aside] == [(InputBands.UNKNOWN, 3)]


def test_a_declared_band_without_requests_is_not_proved(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """A workload without long contexts says nothing of them."""
    verdict = judged(evidence_of(rows_of(side, {100: (400, 0), 3_000: (400, 0)})))
    found = {f.cohort: (f.outcome, f.reason) for f in verdict.findings}
    assert found[LONG] == (Outcome.INCONCLUSIVE, Reason.MISSING)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_pair_is_in_the_band_of_the_baselines_count(
    evidence_of: EvidenceOf, side: SideOf
) -> None:
    """Else in that of the candidate's, so that a request that one arm failed keeps its band."""
    rows = rows_of(side, {100: (300, 0), 3_000: (300, 0), 9_000: (300, 0)})
    for row in rows[-30:]:
        failed = {"input_tokens": None, "error_type": "timeout", "score_task_completion": None}
        row["candidate"] = dict(row["candidate"]) | failed
    for row in rows[:100]:
        row["baseline"] = dict(row["baseline"]) | {"input_tokens": None}
    verdict = judged(evidence_of(rows))
    assert {one.cohort: one.pairs for one in verdict.cohorts} == {
        "chat": 900,
        SHORT: 300,
        MIDDLE: 300,
        LONG: 300,
    }
    assert {f.cohort: f.outcome for f in verdict.findings}[LONG] is Outcome.FAIL


def test_a_cohort_may_not_be_named_like_a_band(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Two meanings of one name would hide one of them."""
    rows = [row | {"cohort": LONG} for row in rows_of(side, {100: (20, 0)})]
    with pytest.raises(EvidenceError, match="wanted another name"):
        judged(evidence_of(rows))


def test_a_rule_can_list_bands(evidence_of: EvidenceOf, side: SideOf) -> None:
    """A band is named like a cohort."""
    listed = POLICY.replace("scope: cohort}", f'scope: cohort, cohorts: ["{LONG}"]}}')
    verdict = judged(evidence_of(rows_of(side, {100: (99, 0.5), 9_000: (99, 0)})), listed)
    assert [(f.cohort, f.outcome) for f in verdict.findings] == [(LONG, Outcome.PASS)]
