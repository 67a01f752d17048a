"""The laws of counts and times, each broken once."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collector.contract import (
    Generation,
    Speculation,
    conservation,
    counts_usable,
    violations,
    wire_field,
)
from collector.contract.conservation import LAWS, Law, LawChecker, LawForm
from collector.contract.fields import WIRE, flatten
from collector.store import generation_rows

COMPILED = conservation.Laws is not None
JUDGE = LawChecker(LAWS)

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
    optional={
        name: (COUNTS if wire.form is wire_field.Form.INTEGERS else COUNT)
        if wire.not_negative is wire_field.NotNegative.COUNTS
        else NUMBER
        for name, wire in WIRE.items()
        if wire.not_negative is not None
    },
)


def in_python(laws: tuple[Law, ...]) -> LawChecker:
    """Return the judge of an installation without a compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conservation, "Laws", None)
        return LawChecker(laws)


@pytest.mark.skipif(not COMPILED, reason="there was no compiler when this was installed")
@settings(max_examples=500, deadline=None)
@given(FIELDS)
@example(flatten(generation(LAWFUL, ttft_s=1.000001, retries=0)))
@example({"start_unix_ns": 0, "end_unix_ns": 1, "spec_acceptance_histogram": (0, 2**62, 2**62)})
def test_what_surely_holds_holds(fields: dict[str, Any]) -> None:
    """The compiled look at the laws calls nothing lawful in which Python finds one broken."""
    assert JUDGE.surely_hold(flatten(generation(LAWFUL, ttft_s=0.5, tpot_s=0.01)))
    assert JUDGE.broken(fields) == in_python(LAWS).broken(fields)


NEW_LAWS = (
    (Law("times:negative_new_s", LawForm.NOT_NEGATIVE, ("new_s",)), {"new_s": -0.5}),
    (
        Law("tokens:more_out", LawForm.ASCENDS, ("output_tokens", "new")),
        {"new": 1, "output_tokens": 2},
    ),
    (
        Law("counts:new_sum", LawForm.SUMS_TO, ("new_counts", "new")),
        {"new_counts": (1, 2), "new": 4},
    ),
    (
        Law("counts:new_places", LawForm.SUMS_BY_PLACE_TO, ("new_counts", "new")),
        {"new_counts": (1, 2), "new": 3},
    ),
    (Law("counts:new_increases", LawForm.DESCENDS, ("new_counts",)), {"new_counts": (1, 2)}),
    (
        Law("times:new_exceeds", LawForm.WITHIN, ("new_s", "start_unix_ns", "end_unix_ns")),
        {"new_s": 1.5},
    ),
)


@pytest.mark.parametrize(
    "compiled",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(
                not COMPILED, reason="there was no compiler when this was installed"
            ),
        ),
    ],
)
@pytest.mark.parametrize(("law", "breaking"), NEW_LAWS, ids=[law.flag for law, _ in NEW_LAWS])
def test_a_law_that_is_added_to_the_table_is_held(
    law: Law, breaking: dict[str, Any], *, compiled: bool
) -> None:
    """It needs no line of C: what breaks it is flagged, and what does not is lawful."""
    laws = (*LAWS, law)
    judge = LawChecker(laws) if compiled else in_python(laws)
    assert judge.is_compiled() is compiled
    lawful = flatten(generation(LAWFUL, ttft_s=0.5))
    assert judge.surely_hold(lawful) is compiled
    assert judge.broken(lawful) == ()
    assert judge.broken(lawful | breaking) == (law.flag,)


@pytest.mark.skipif(not COMPILED, reason="there was no compiler when this was installed")
def test_every_form_of_laws_is_compiled() -> None:
    """One that is not would have Python look at every generation."""
    assert {law.form for law, _ in NEW_LAWS} == set(LawForm)
    assert JUDGE.is_compiled()


@pytest.mark.skipif(not COMPILED, reason="there was no compiler when this was installed")
def test_laws_that_the_compiled_look_does_not_know_are_pythons() -> None:
    """Nothing surely holds then: a form of its own, or more laws than there is room for."""
    lawful = flatten(generation(LAWFUL))
    of_another_form = Law("counts:odd", "is_odd", ("spec_steps",))  # type: ignore[arg-type]
    for laws in ((*LAWS, of_another_form), LAWS * 10):
        compiled = conservation.Laws(laws, 1e-6)
        assert not compiled.known
        assert not compiled.surely_hold(lawful)


@pytest.mark.skipif(not COMPILED, reason="there was no compiler when this was installed")
@settings(deadline=None)
@given(st.lists(COUNT, max_size=70).map(tuple))
def test_counts_are_written_as_json(counts: tuple[int, ...]) -> None:
    """The compiled writer of lists writes what an encoder would, or nothing."""
    assert generation_rows.dump_counts((0, 7, 2**63 - 1)) == f"[0,7,{2**63 - 1}]"
    written = generation_rows.dump_counts(counts)
    assert written in (None, json.dumps(counts, separators=(",", ":")))
