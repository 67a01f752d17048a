"""The laws of counts and times, each broken once."""

import importlib.util
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collector.contract import (
    Arm,
    Generation,
    Speculation,
    conservation,
    counts_usable,
    violations,
)
from collector.contract.fields import flatten
from collector.store import generation_rows

COMPILED = importlib.util.find_spec("collector.contract._laws") is not None

LAWFUL = Speculation(
    steps=3,
    draft_tokens=11,
    accepted_tokens=5,
    draft_tokens_per_pos=(3, 3, 3, 2),
    accepted_tokens_per_pos=(2, 2, 1, 0),
    acceptance_histogram=(1, 0, 1, 1, 0),
)


def generation(spec: Speculation | None = None, **fields: object) -> Generation:
    base: dict[str, object] = {
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "start_unix_ns": 0,
        "end_unix_ns": 10**9,
    }
    return Generation(speculation=spec, **(base | fields))  # type: ignore[arg-type]


def test_lawful_counts_break_nothing() -> None:
    """Counts that add up carry no flag."""
    assert violations(generation(LAWFUL)) == ()


@pytest.mark.parametrize(
    ("broken", "flags"),
    [
        (Speculation(draft_tokens=2, accepted_tokens=3), ("counts:accepted_exceeds_draft",)),
        (Speculation(steps=-1), ("counts:negative",)),
        (Speculation(steps=2, acceptance_histogram=(1, 2)), ("counts:histogram_sum",)),
        (
            Speculation(accepted_tokens=3, acceptance_histogram=(1, 2)),
            ("counts:histogram_accepted",),
        ),
        (Speculation(draft_tokens_per_pos=(1, 2)), ("counts:draft_per_pos_increases",)),
        (
            Speculation(accepted_tokens=4, accepted_tokens_per_pos=(2, 1)),
            ("counts:accepted_per_pos_sum",),
        ),
    ],
)
def test_each_broken_law_of_counts_is_named(broken: Speculation, flags: tuple[str, ...]) -> None:
    """A violation names its law."""
    assert violations(generation(broken)) == flags


@pytest.mark.parametrize(
    ("fields", "flags"),
    [
        ({"end_unix_ns": -1}, ("times:end_before_start",)),
        ({"ttft_s": -0.1}, ("times:negative_ttft_s",)),
        (
            {"prefill_s": -0.1, "decode_s": -1.0},
            ("times:negative_prefill_s", "times:negative_decode_s"),
        ),
        ({"ttft_s": 1.5}, ("times:ttft_exceeds_duration",)),
        ({"output_tokens": -1}, ("tokens:negative_output_tokens",)),
    ],
)
def test_each_broken_law_of_times_is_named(
    fields: dict[str, object], flags: tuple[str, ...]
) -> None:
    """A clock that ran backwards and a first token after the last are seen."""
    assert violations(generation(**fields)) == flags


def test_only_flagged_counts_stay_out_of_ratios() -> None:
    """A time violation leaves counts usable; a count violation, or absent counts, do not."""
    assert counts_usable(generation(LAWFUL, quality=("times:ttft_exceeds_duration",)))
    assert not counts_usable(generation(LAWFUL, quality=("counts:histogram_sum",)))
    assert not counts_usable(generation(Speculation(method="draft_model")))
    assert not counts_usable(generation())


COUNT = st.integers(-1, 12) | st.sampled_from([2**53, 2**63 - 1, 2**63, True])
COUNTS = st.lists(COUNT, max_size=5).map(tuple)
NUMBER = st.floats() | st.integers(-1, 3) | st.just(2**70)
FIELDS = st.fixed_dictionaries(
    {"start_unix_ns": st.integers(-1, 9), "end_unix_ns": st.integers(0, 10**10) | st.just(2**63)},
    optional=dict.fromkeys((*conservation._TIMES, *conservation._TOKENS), NUMBER)
    | dict.fromkeys(conservation._COUNTS, COUNT)
    | dict.fromkeys(conservation._COUNT_LISTS, COUNTS),
)


@pytest.mark.skipif(not COMPILED, reason="there was no compiler when this was installed")
@settings(max_examples=500, deadline=None)
@given(FIELDS)
@example(flatten(generation(LAWFUL, ttft_s=1.000001, retries=0)))
@example({"start_unix_ns": 0, "end_unix_ns": 1, "spec_acceptance_histogram": (0, 2**62, 2**62)})
def test_what_surely_holds_holds(fields: dict[str, Any]) -> None:
    """The compiled look at the laws calls nothing lawful in which Python finds one broken."""
    assert conservation.surely_hold(flatten(generation(LAWFUL, ttft_s=0.5, tpot_s=0.01)))
    if conservation.surely_hold(fields):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conservation, "surely_hold", lambda _fields: False)
            assert conservation.broken_laws(fields) == ()


@pytest.mark.skipif(not COMPILED, reason="there was no compiler when this was installed")
@settings(deadline=None)
@given(st.lists(COUNT, max_size=70).map(tuple))
def test_counts_are_written_as_json(counts: tuple[int, ...]) -> None:
    """The compiled writer of lists writes what an encoder would, or nothing."""
    assert generation_rows.dump_counts((0, 7, 2**63 - 1)) == f"[0,7,{2**63 - 1}]"
    written = generation_rows.dump_counts(counts)
    assert written in (None, json.dumps(counts, separators=(",", ":")))


ROW_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "arm": st.sampled_from(Arm),
        "stop_sequences": st.lists(st.text(max_size=3), max_size=3).map(tuple),
        "finish_reasons": st.just(("stop",)),
        "dims": st.just({"a": "b"}),
        "quality": st.just(("counts:negative",)),
        "cohort": st.text(max_size=3),
    },
)
LAWFUL_FIELDS = flatten(generation(LAWFUL, ttft_s=0.5))


@pytest.mark.skipif(not COMPILED, reason="there was no compiler when this was installed")
@settings(max_examples=500, deadline=None)
@given(FIELDS | st.just(LAWFUL_FIELDS), ROW_FIELDS)
@example(LAWFUL_FIELDS, {})
def test_a_row_is_made_at_once_or_not_at_all(fields: dict[str, Any], more: dict[str, Any]) -> None:
    """The compiled maker of rows makes those of lawful generations, and leaves others untouched."""
    assert generation_rows.make_lawful(LAWFUL_FIELDS.copy(), "draftgate")
    given_ = fields | more
    made = given_.copy()
    if generation_rows.make_lawful(made, "draftgate"):
        assert conservation.broken_laws(given_) == ()
        assert made == generation_rows.to_row(given_, "draftgate")
        assert {type(value) for value in made.values()} <= {str, int, float, bool}
    else:
        assert made == given_
