"""Laws that a generation's counts and times must obey.

A span that breaks one is stored as sent, flagged, and its speculation counts stay out of every
ratio.
"""

from collections.abc import Mapping
from operator import mul
from typing import Any

from collector.contract.fields import flatten
from collector.contract.records import Generation

try:
    from collector.contract._laws import surely_hold
except ImportError:  # there was no compiler when this was installed

    def surely_hold(fields: dict[str, Any]) -> bool:  # noqa: ARG001  # as the compiled one has it
        """Say whether the fields are seen to break no law: never, without a look at each."""
        return False


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

_NOTHING = (0,)
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
    if isinstance(fields, dict) and surely_hold(fields):
        return ()  # as of almost every span
    broken: list[str] = []
    _check_times(fields, broken)
    _check_signs(fields, broken)
    if not _ANY_COUNT.isdisjoint(fields):
        _check_counts(fields, broken)
    return tuple(broken)


def usable_counts(fields: Mapping[str, Any]) -> bool:
    """Return what `counts_usable` does, for a generation's flat fields."""
    if "spec_draft_tokens" not in fields or "spec_accepted_tokens" not in fields:
        return False
    return not any(flag.startswith(COUNTS) for flag in fields.get("quality", ()))


# Lists and not generators below: every span passes here, and almost none breaks a law.
def _check_times(fields: Mapping[str, Any], broken: list[str]) -> None:
    duration_s = (fields["end_unix_ns"] - fields["start_unix_ns"]) / 1e9
    if duration_s < 0:
        broken.append("times:end_before_start")
    if fields.get("ttft_s", 0) > max(duration_s, 0) + _ROUNDING_S:
        broken.append("times:ttft_exceeds_duration")


def _check_signs(fields: Mapping[str, Any], broken: list[str]) -> None:
    get = fields.get
    broken += [f"times:negative_{name}" for name in _TIMES if get(name, 0) < 0]
    broken += [f"tokens:negative_{name}" for name in _TOKENS if get(name, 0) < 0]


def _check_counts(fields: Mapping[str, Any], broken: list[str]) -> None:
    get = fields.get
    steps, drafted = get("spec_steps"), get("spec_draft_tokens")
    accepted, histogram = get("spec_accepted_tokens"), get("spec_acceptance_histogram")
    negative = [name for name in _COUNTS if get(name, 0) < 0]
    negative += [name for name in _COUNT_LISTS if min(get(name) or _NOTHING) < 0]
    if negative:
        broken.append("counts:negative")
    if accepted is not None and drafted is not None and accepted > drafted:
        broken.append("counts:accepted_exceeds_draft")
    if histogram is not None:
        if steps is not None and sum(histogram) != steps:
            broken.append("counts:histogram_sum")
        if accepted is not None and sum(map(mul, histogram, range(len(histogram)))) != accepted:
            broken.append("counts:histogram_accepted")
    for name, field, total in (
        ("draft", "spec_draft_tokens_per_pos", drafted),
        ("accepted", "spec_accepted_tokens_per_pos", accepted),
    ):
        per_pos = get(field)
        if per_pos is None:
            continue
        if list(per_pos) != sorted(per_pos, reverse=True):
            broken.append(f"counts:{name}_per_pos_increases")
        if total is not None and sum(per_pos) != total:
            broken.append(f"counts:{name}_per_pos_sum")
