"""The laws of counts and times, each broken once."""

import pytest

from collector.contract import Generation, Speculation, counts_usable, violations

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
