"""A request's counts of speculation as span attributes."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

PROPOSED: Mapping[str, str] = {
    "spec_decode.num_steps": "gen_ai.speculative_decoding.step.count",
    "spec_decode.num_draft_tokens": "gen_ai.speculative_decoding.drafted_tokens",
    "spec_decode.num_accepted_tokens": "gen_ai.speculative_decoding.accepted_tokens",
    "spec_decode.num_speculative_tokens": "gen_ai.speculative_decoding.max_draft_tokens",
}
"""The name of each count as proposed to OpenTelemetry's GenAI conventions."""


class RequestCounts(Protocol):
    """vLLM's `RequestSpecDecodeMetrics`: the counts of one answer."""

    num_spec_tokens: int
    histogram: Sequence[int]
    """Entry j: steps that accepted exactly j draft tokens."""
    num_draft_tokens: int


def attributes_of(counts: RequestCounts, *, proposed: bool) -> dict[str, Any]:
    """Return the counts as attributes; with `proposed`, four of them by both of their names."""
    histogram = list(counts.histogram)
    named = {
        "spec_decode.source": "request",
        "spec_decode.num_speculative_tokens": counts.num_spec_tokens,
        "spec_decode.num_steps": sum(histogram),
        "spec_decode.num_draft_tokens": counts.num_draft_tokens,
        "spec_decode.num_accepted_tokens": sum(j * steps for j, steps in enumerate(histogram)),
        "spec_decode.num_accepted_tokens_per_pos": list(accumulate(histogram[:0:-1]))[::-1],
        "spec_decode.acceptance_histogram": histogram,
    }
    if proposed:
        named |= {theirs: named[ours] for ours, theirs in PROPOSED.items()}
    return named
