"""Laws that a generation's counts and times must obey.

A span that breaks one is stored as sent, flagged, and its speculation counts stay out of every
ratio.
"""

from collections.abc import Iterator
from itertools import pairwise

from collector.contract.records import Generation, Speculation

COUNTS = "counts"
"""Flags that begin with this prefix keep a generation's speculation counts out of every ratio."""


_ROUNDING_S = 1e-6
"""A time to first token is a double, a duration a difference of nanoseconds."""


def violations(generation: Generation) -> tuple[str, ...]:
    """Return the broken laws as flags, `group:law`, in a fixed order; empty where all hold."""
    found = list(_time_violations(generation))
    if generation.speculation is not None:
        found += _count_violations(generation.speculation)
    return tuple(found)


def counts_usable(generation: Generation) -> bool:
    """Say whether the generation's speculation counts may enter a ratio."""
    spec = generation.speculation
    if spec is None or spec.draft_tokens is None or spec.accepted_tokens is None:
        return False
    return not any(flag.startswith(COUNTS) for flag in generation.quality)


def _time_violations(generation: Generation) -> Iterator[str]:
    if generation.end_unix_ns < generation.start_unix_ns:
        yield "times:end_before_start"
    durations = {
        name: getattr(generation, name)
        for name in (
            "ttft_s",
            "server_ttft_s",
            "tpot_s",
            "queue_s",
            "prefill_s",
            "decode_s",
            "stream_max_gap_s",
            "stream_p99_gap_s",
        )
    }
    for name, value in durations.items():
        if value is not None and value < 0:
            yield f"times:negative_{name}"
    if generation.ttft_s is not None and generation.ttft_s > max(generation.e2e_s, 0) + _ROUNDING_S:
        yield "times:ttft_exceeds_duration"
    for name in (
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
        "retries",
        "stream_chunks",
    ):
        value = getattr(generation, name)
        if value is not None and value < 0:
            yield f"tokens:negative_{name}"


def _count_violations(spec: Speculation) -> Iterator[str]:
    lists = (spec.draft_tokens_per_pos, spec.accepted_tokens_per_pos, spec.acceptance_histogram)
    scalars = (spec.steps, spec.draft_tokens, spec.accepted_tokens)
    flat = [n for n in scalars if n is not None] + [n for ns in lists if ns is not None for n in ns]
    if any(n < 0 for n in flat):
        yield "counts:negative"
    if _exceeds(spec.accepted_tokens, spec.draft_tokens):
        yield "counts:accepted_exceeds_draft"
    yield from _histogram_violations(spec)
    for name, per_pos, total in (
        ("draft", spec.draft_tokens_per_pos, spec.draft_tokens),
        ("accepted", spec.accepted_tokens_per_pos, spec.accepted_tokens),
    ):
        if per_pos is None:
            continue
        if any(later > earlier for earlier, later in pairwise(per_pos)):
            yield f"counts:{name}_per_pos_increases"
        if total is not None and sum(per_pos) != total:
            yield f"counts:{name}_per_pos_sum"


def _histogram_violations(spec: Speculation) -> Iterator[str]:
    histogram = spec.acceptance_histogram
    if histogram is None:
        return
    if spec.steps is not None and sum(histogram) != spec.steps:
        yield "counts:histogram_sum"
    weighted = sum(j * count for j, count in enumerate(histogram))
    if spec.accepted_tokens is not None and weighted != spec.accepted_tokens:
        yield "counts:histogram_accepted"


def _exceeds(part: int | None, whole: int | None) -> bool:
    return part is not None and whole is not None and part > whole
