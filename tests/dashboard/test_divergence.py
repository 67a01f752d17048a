"""Where two answers part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.divergence import Divergence, divergence


@pytest.mark.parametrize(
    ("baseline", "candidate", "split"),
    [
        ("", "", Divergence("", "", "")),
        ("same", "same", Divergence("same", "", "")),
        ("abc", "abd", Divergence("ab", "c", "d")),
        ("abc", "ab", Divergence("ab", "c", "")),
        ("x", "y", Divergence("", "x", "y")),
    ],
)
def test_answers_are_split_where_they_part(
    baseline: str, candidate: str, split: Divergence
) -> None:
    """The longest common prefix stands apart from both rests."""
    assert divergence(baseline, candidate) == split


@given(st.text(), st.text())
def test_nothing_is_lost(baseline: str, candidate: str) -> None:
    """Both texts can be put together again, and the rests differ at once."""
    split = divergence(baseline, candidate)
    assert split.common + split.baseline_rest == baseline
    assert split.common + split.candidate_rest == candidate
    assert split.identical == (baseline == candidate)
    assert split.baseline_rest[:1] != split.candidate_rest[:1] or split.identical
