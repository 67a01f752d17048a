"""Acceptance by length of answer and prompt, by load, by step and over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.contract import Arm, ArmSummary, TimeBucket
from evals.evidence.acceptance import length, rate

_COUNTS = ("spec_steps", "spec_draft_tokens", "spec_accepted_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceBucket:
    """Acceptance of the candidate's generations whose value is in [low, high]."""

    low: int
    high: int
    generations: int
    steps: int
    draft_tokens: int
    accepted_tokens: int
    rate: float | None
    length: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCount:
    """The number of verify steps that accepted exactly `accepted` draft tokens."""

    accepted: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceInterval:
    """Acceptance of the candidate in one interval of time."""

    start_unix_s: int
    length_s: int
    draft_tokens: int
    rate: float | None
    length: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A fingerprint of target, draft, engine and flags, and when it was first seen."""

    fingerprint: str
    first_start_unix_ns: int
    generations: int


def by_number(table: pa.Table, column: str) -> tuple[AcceptanceBucket, ...]:
    """Return acceptance by `output_tokens`, `input_tokens` or `concurrency`.

    Each bucket goes from a power of two up to the next one; 0 has its own. `table` has rows of
    `Client.generation_batches`; rows without counts, or whose counts break the contract, are left
    out.
    """
    usable = _usable(table).filter(pc.is_valid(_usable(table)[column]))
    numbers = np.asarray(usable[column].to_numpy(), dtype=np.int64)
    counts = [np.asarray(usable[name].to_numpy(), dtype=np.int64) for name in _COUNTS]
    exponents = np.where(numbers > 0, np.floor(np.log2(np.maximum(numbers, 1))).astype(int), -1)
    found = []
    for exponent in sorted(set(exponents.tolist())):
        inside = exponents == exponent
        steps, drafts, accepted = (int(values[inside].sum()) for values in counts)
        found.append(
            AcceptanceBucket(
                low=0 if exponent < 0 else 1 << exponent,
                high=0 if exponent < 0 else (1 << exponent + 1) - 1,
                generations=int(inside.sum()),
                steps=steps,
                draft_tokens=drafts,
                accepted_tokens=accepted,
                rate=rate(accepted, drafts),
                length=length(accepted, steps),
            )
        )
    return tuple(found)


def per_step(table: pa.Table) -> tuple[StepCount, ...]:
    """Return how many verify steps accepted 0, 1, 2 … tokens.

    From the engines' histograms if given, otherwise from their counts by position.
    """
    usable = _usable(table)
    totals: dict[int, int] = {}
    columns = (usable[name].to_pylist() for name in (_HISTOGRAM, _PER_POS, "spec_steps"))
    for histogram, per_pos, steps in zip(*columns, strict=True):
        for accepted, n in enumerate(histogram or _from_positions(per_pos, steps)):
            totals[accepted] = totals.get(accepted, 0) + n
    return tuple(StepCount(accepted=a, steps=totals[a]) for a in sorted(totals))


def over_time(buckets: Iterable[TimeBucket], cohort: str | None) -> tuple[AcceptanceInterval, ...]:
    """Return acceptance over time from `Client.timeseries`; cohorts are summed, not averaged."""
    sums: dict[tuple[int, int], list[int]] = {}
    for bucket in buckets:
        counts = _counts(bucket.summary)
        if bucket.summary.arm is Arm.CANDIDATE and cohort in (None, bucket.summary.cohort):
            at = sums.setdefault((bucket.start_unix_s, bucket.length_s), [0, 0, 0])
            at[:] = [a + b for a, b in zip(at, counts, strict=True)]
    return tuple(
        AcceptanceInterval(
            start_unix_s=start,
            length_s=length_s,
            draft_tokens=drafts,
            rate=rate(accepted, drafts),
            length=length(accepted, steps),
        )
        for (start, length_s), (steps, drafts, accepted) in sorted(sums.items())
        if drafts
    )


def deployments(table: pa.Table) -> tuple[Deployment, ...]:
    """Return the candidate's fingerprints in the order of their first appearance."""
    known = table.filter(
        pc.and_(pc.equal(table["arm"], Arm.CANDIDATE.value), pc.is_valid(table["fingerprint"]))
    )
    groups = known.group_by("fingerprint").aggregate(
        [("start_unix_ns", "min"), ("start_unix_ns", "count")]
    )
    found = [
        Deployment(
            fingerprint=row["fingerprint"],
            first_start_unix_ns=row["start_unix_ns_min"],
            generations=row["start_unix_ns_count"],
        )
        for row in groups.to_pylist()
    ]
    return tuple(sorted(found, key=lambda d: d.first_start_unix_ns))


_HISTOGRAM, _PER_POS = "spec_acceptance_histogram", "spec_accepted_tokens_per_pos"


def _usable(table: pa.Table) -> pa.Table:
    given = pc.equal(table["arm"], Arm.CANDIDATE.value)
    for name in _COUNTS:
        given = pc.and_(given, pc.is_valid(table[name]))
    broken = [
        any(flag.startswith("counts:") for flag in flags or ())
        for flags in table["quality"].to_pylist()
    ]
    return table.filter(pc.and_(given, pc.invert(pa.array(broken, pa.bool_()))))


def _from_positions(per_pos: Sequence[int] | None, steps: int) -> list[int]:
    """Return steps by exact number of accepted tokens, from steps by minimum number."""
    if per_pos is None:
        return []
    at_least = [steps, *per_pos, 0]
    return [more - fewer for more, fewer in pairwise(at_least)]


def _counts(summary: ArmSummary) -> tuple[int, int, int]:
    return (
        summary.spec_steps or 0,
        summary.spec_draft_tokens or 0,
        summary.spec_accepted_tokens or 0,
    )
