"""Laws that a generation's counts and times must obey.

A span that breaks one is stored as sent, flagged, and its speculation counts stay out of every
ratio.
"""

from collections.abc import Iterator, Mapping
from operator import mul
from typing import Any

from collector.contract.fields import flatten
from collector.contract.records import Generation

COUNTS = "counts"
"""Flags that begin with this prefix keep a generation's speculation counts out of every ratio."""

_ROUNDING_S = 1e-6
"""A time to first token is a double, a duration a difference of nanoseconds."""
_TIMES = (
    "ttft_s",
    "server_ttft_s",
    "tpot_s",
    "queue_s",
    "prefill_s",
    "decode_s",
    "stream_max_gap_s",
    "stream_p99_gap_s",
    "client_lag_s",
)
_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "retries", "stream_chunks")
_COUNTS = ("spec_steps", "spec_draft_tokens", "spec_accepted_tokens")
_COUNT_LISTS = (
    "spec_draft_tokens_per_pos",
    "spec_accepted_tokens_per_pos",
    "spec_acceptance_histogram",
)

_ANY_COUNT = frozenset(_COUNTS + _COUNT_LISTS)


def violations(generation: Generation) -> tuple[str, ...]:
    """Return the broken laws as flags, `group:law`, in a fixed order; empty where all hold."""
    return broken_laws(flatten(generation))


def counts_usable(generation: Generation) -> bool:
    """Say whether the generation's speculation counts may enter a ratio."""
    return usable_counts(flatten(generation))


# Any: each value has its field's own type, which the codec has seen to.
def broken_laws(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what `violations` does, for a generation's flat fields."""
    return (*_time_violations(fields), *_sign_violations(fields), *_count_violations(fields))


def usable_counts(fields: Mapping[str, Any]) -> bool:
    """Return what `counts_usable` does, for a generation's flat fields."""
    if "spec_draft_tokens" not in fields or "spec_accepted_tokens" not in fields:
        return False
    return not any(flag.startswith(COUNTS) for flag in fields.get("quality", ()))


def _time_violations(fields: Mapping[str, Any]) -> Iterator[str]:
    duration_s = (fields["end_unix_ns"] - fields["start_unix_ns"]) / 1e9
    if duration_s < 0:
        yield "times:end_before_start"
    if fields.get("ttft_s", 0) > max(duration_s, 0) + _ROUNDING_S:
        yield "times:ttft_exceeds_duration"


def _sign_violations(fields: Mapping[str, Any]) -> Iterator[str]:
    for name in _TIMES:
        if name in fields and fields[name] < 0:
            yield f"times:negative_{name}"
    for name in _TOKENS:
        if name in fields and fields[name] < 0:
            yield f"tokens:negative_{name}"


def _count_violations(fields: Mapping[str, Any]) -> Iterator[str]:
    if _ANY_COUNT.isdisjoint(fields):
        return
    steps, drafted, accepted = map(fields.get, _COUNTS)
    drafted_per_pos, accepted_per_pos, histogram = map(fields.get, _COUNT_LISTS)
    scalars = [count for count in (steps, drafted, accepted) if count is not None]
    lists = [counts for counts in (drafted_per_pos, accepted_per_pos, histogram) if counts]
    if min(scalars, default=0) < 0 or min(map(min, lists), default=0) < 0:
        yield "counts:negative"
    if accepted is not None and drafted is not None and accepted > drafted:
        yield "counts:accepted_exceeds_draft"
    if histogram is not None:
        if steps is not None and sum(histogram) != steps:
            yield "counts:histogram_sum"
        if accepted is not None and sum(map(mul, histogram, range(len(histogram)))) != accepted:
            yield "counts:histogram_accepted"
    if drafted_per_pos is not None:
        yield from _per_position_violations("draft", drafted_per_pos, drafted)
    if accepted_per_pos is not None:
        yield from _per_position_violations("accepted", accepted_per_pos, accepted)


def _per_position_violations(
    name: str, per_pos: tuple[int, ...], total: int | None
) -> Iterator[str]:
    if sorted(per_pos, reverse=True) != list(per_pos):
        yield f"counts:{name}_per_pos_increases"
    if total is not None and sum(per_pos) != total:
        yield f"counts:{name}_per_pos_sum"
