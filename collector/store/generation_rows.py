"""Generations to rows and back."""

import json
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import RowMapping

from collector.contract import Arm, Content, Generation, Speculation, counts_usable

# The trace and span ids stand first and are bytes in the row.
_SCALARS: Final = (
    "start_unix_ns",
    "end_unix_ns",
    "operation",
    "provider",
    "request_model",
    "response_model",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "response_id",
    "error_type",
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "ttft_s",
    "server_ttft_s",
    "tpot_s",
    "queue_s",
    "stream_chunks",
    "stream_max_gap_s",
    "stream_p99_gap_s",
    "rollout",
    "cohort",
    "prompt_id",
    "repeat",
    "route",
    "retries",
    "fallback",
    "mirrored",
    "concurrency",
    "service_name",
    "service_version",
    "fingerprint",
)
_LISTS: Final = ("stop_sequences", "finish_reasons")
_SPEC_SCALARS: Final = (
    "method",
    "draft_model",
    "num_speculative_tokens",
    "lossless",
    "source",
    "steps",
    "draft_tokens",
    "accepted_tokens",
)
_SPEC_LISTS: Final = ("draft_tokens_per_pos", "accepted_tokens_per_pos", "acceptance_histogram")
_SPEC_COLUMNS: Final = tuple(f"spec_{name}" for name in _SPEC_SCALARS + _SPEC_LISTS)

COLUMNS: Final = (
    "trace_id",
    "span_id",
    "dialect",
    "arm",
    "dims",
    "quality",
    "counts_usable",
    *_SCALARS,
    *_LISTS,
    *_SPEC_COLUMNS,
)
"""The columns of `to_row`, in order."""

# One encoder for all rows: json.dumps would make one for each call that has options.
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_scalars_of = attrgetter(*_SCALARS)
_spec_scalars_of = attrgetter(*_SPEC_SCALARS)
_NO_SPECULATION: Final = (None,) * len(_SPEC_COLUMNS)

Row = tuple[Any, ...]  # Any: one value a column, each of its column's type


def to_row(generation: Generation, dialect: str) -> Row:
    """Return the generation as a row of `COLUMNS`; its content stays out."""
    return (
        bytes.fromhex(generation.trace_id),
        bytes.fromhex(generation.span_id),
        dialect,
        generation.arm.value if generation.arm is not None else None,
        _dump(dict(generation.dims)),
        _dump(generation.quality),
        counts_usable(generation),
        *_scalars_of(generation),
        *(_dump_list(getattr(generation, name)) for name in _LISTS),
        *_speculation_to_row(generation.speculation),
    )


def from_row(row: RowMapping, content: Content | None = None) -> Generation:
    """Return the generation that a row of the generation table holds."""
    return Generation(
        trace_id=row["trace_id"].hex(),
        span_id=row["span_id"].hex(),
        arm=Arm(row["arm"]) if row["arm"] is not None else None,
        dims=json.loads(row["dims"]),
        quality=tuple(json.loads(row["quality"])),
        speculation=_speculation_from_row(row),
        content=content,
        **{name: row[name] for name in _SCALARS},
        **{name: load_list(row[name]) for name in _LISTS},
    )


def load_list(text: str | None) -> Any:  # Any: the list type of the field
    """Return the list that a JSON column holds; NULL is unknown, not empty."""
    return None if text is None else tuple(json.loads(text))


def _speculation_to_row(speculation: Speculation | None) -> Row:
    if speculation is None:
        return _NO_SPECULATION
    return (
        *_spec_scalars_of(speculation),
        *(_dump_list(getattr(speculation, name)) for name in _SPEC_LISTS),
    )


def _speculation_from_row(row: RowMapping) -> Speculation | None:
    if all(row[name] is None for name in _SPEC_COLUMNS):
        return None
    return Speculation(
        **{name: row[f"spec_{name}"] for name in _SPEC_SCALARS},
        **{name: load_list(row[f"spec_{name}"]) for name in _SPEC_LISTS},
    )


def _dump_list(value: tuple[Any, ...] | None) -> str | None:
    return None if value is None else _dump(value)
