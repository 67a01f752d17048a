"""Rollup states: exact counts, percentiles within their error, sums in any order."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.store.rollups import columns, state

NAN = math.nan
NO_COUNTS = (0,) * len(state.COUNTS)


def packed(values: Sequence[float], counts: Sequence[int] = NO_COUNTS) -> state.Packed:
    """Observe times to first token, one generation each."""
    rest = (NAN,) * (len(state.METRICS) - 1)
    rows = [(value, *rest) for value in values]
    parts = state.observe([0] * len(rows), [tuple(counts)] * len(rows), rows)[0]
    return state.Packed(1, 2, *parts)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_within_one_percent(seed: int) -> None:
    """On lognormal times with spikes, any quantile is at most 1 % from the exact lower one."""
    rng = np.random.default_rng(seed)
    values = rng.lognormal(-2, 1, 5000) * np.where(rng.random(5000) < 0.02, 30, 1)
    found = state.unpack(packed(values.tolist()))
    for q in (0, 0.01, 0.5, 0.95, 0.99, 0.999, 1):
        exact = float(np.quantile(values, q, method="lower"))
        sketch = found.quantile("ttft_s", q)
        assert sketch is not None
        assert abs(sketch - exact) <= state.RELATIVE_ERROR * exact * (1 + 1e-9)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.lists(st.floats(0, 1e15), min_size=1, max_size=8), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_merging_is_observing_together(parts: list[list[float]], random: object) -> None:
    """Counts and bins add up exactly, in whatever order and grouping the states come."""
    together = state.unpack(packed([value for part in parts for value in part]))
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis's own Random
    half = len(shuffled) // 2
    groups = [[packed(part) for part in group] for group in (shuffled[:half], shuffled[half:])]
    merged = state.unpack(state.merge([state.merge(group) for group in groups if group]))
    assert merged.bins == together.bins
    assert merged.counts == together.counts
    mine, theirs = merged.moments["ttft_s"], together.moments["ttft_s"]
    assert (mine.n, mine.min, mine.max) == (theirs.n, theirs.min, theirs.max)
    assert math.isclose(mine.sum, theirs.sum, rel_tol=1e-9)


def test_merging_many_groups_is_merging_each() -> None:
    """Groups that are merged in one go keep apart, whether anything was measured or not."""
    counts = list(range(len(state.COUNTS)))
    parts = [
        [packed([0.1, 0.2], counts), packed([0.2, 7.0], counts)],
        [packed([NAN], [2**40 + n for n in counts])],
        [packed([0.2, 0.0]), packed([NAN])],
    ]
    assert state.merge_each(parts) == [state.merge(group) for group in parts]
    assert state.unpack(state.merge(parts[0])).counts["input_tokens"] == 16


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e15])
def test_merging_many_states_with_the_same_bins_is_observing_together(scale: float) -> None:
    """Whether their bins lie side by side, or so far apart that sums have no place each."""
    rng = np.random.default_rng(3)
    groups = rng.lognormal(-2, 1, (4, 200, 20))
    groups[:, 0, 0] *= scale
    merged = state.merge_each([[packed(part) for part in group.tolist()] for group in groups])
    together = [packed(group.ravel().tolist()) for group in groups]
    assert [one.bins for one in merged] == [one.bins for one in together]


def test_counts_of_any_int64_add_up_exactly() -> None:
    """Token counts are the sender's, and their sum may not overflow."""
    largest = tuple(2**63 - 1 for _ in state.COUNTS)
    one = packed([1.0, 1.0, 1.0], largest)
    total = state.unpack(state.merge([one, one, one])).counts
    assert total == dict.fromkeys(state.COUNTS, 9 * (2**63 - 1))


@pytest.mark.parametrize("value", [NAN, -1.0, math.inf, 1e300])
def test_what_is_no_measurement_is_left_out(value: float) -> None:
    """Neither an absent nor an impossible time becomes one."""
    found = state.unpack(packed([value]))
    assert (found.moments, found.bins, found.quantile("ttft_s", 0.5)) == ({}, {}, None)


def test_zero_and_the_extremes_have_bins() -> None:
    """Zero is a time; tiny and huge values keep their exact minimum and maximum."""
    found = state.unpack(packed([0.0, 1e-300, 1e15]))
    assert found.quantile("ttft_s", 0) == 0.0
    assert found.quantile("ttft_s", 1) == 1e15
    assert found.moments["ttft_s"].n == 3


ROWS = st.fixed_dictionaries(
    {},
    optional={
        "count": st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.text(max_size=2),
        "beyond": st.integers(0, 2**65),
        "time": st.floats() | st.integers(-(2**63), 2**63 - 1),
        "other": st.text(max_size=2),
    },
)


@pytest.mark.skipif(columns.fill is None, reason="no compiler when this was installed")
@settings(deadline=None, max_examples=200)
@given(st.lists(ROWS, max_size=6), st.booleans())
def test_numbers_of_rows_are_read_alike(rows: list[dict[str, object]], whole: bool) -> None:
    """The compiled reader of columns reads as Python does, and refuses values beyond int64."""
    integers = ("count", "missing") if whole else ("count", "beyond")

    def read() -> tuple[bytes, ...] | None:
        try:
            found = columns.read(rows, integers, ("time",))
        except OverflowError:
            return None
        return tuple(array.tobytes() for part in found for array in part.values())

    short = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "fill", None)
        assert read() == short


def test_places_for_other_rows_are_refused() -> None:
    """The compiled reader writes nowhere but into arrays of the rows' size."""
    compiled = pytest.importorskip("collector.store._rows")
    places = (np.empty(1, np.int64), np.empty(1, np.bool_), np.empty(1, np.float64))
    assert compiled.fill([{}], ("a",), ("b",), *places)
    assert not compiled.fill([None], ("a",), ("b",), *places)
    with pytest.raises(ValueError, match="a place for each name"):
        compiled.fill([{}, {}], ("a",), ("b",), *places)
