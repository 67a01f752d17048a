"""Reads of rollouts: overviews, and summaries per arm and cohort."""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, select

from collector.contract import (
    P99_FROM,
    Arm,
    ArmSummary,
    MetricSummary,
    RolloutOverview,
    TimeBucket,
)
from collector.errors import NotFoundError
from collector.store import pair_counts, rollup_reads
from collector.store.reader import StoreConnection
from collector.store.rollups.deltas import Series
from collector.store.rollups.state import RollupState
from collector.store.tables import generation as g
from collector.store.tables import series as s


class _OfArm(NamedTuple):
    series: Series
    arm: Arm


def overviews(connection: StoreConnection) -> tuple[RolloutOverview, ...]:
    """Return every rollout that has a generation, ordered by name."""
    series = rollup_reads.series_of(connection)
    by_rollout: dict[str, list[tuple[Series, RollupState]]] = defaultdict(list)
    for id_, state in rollup_reads.counts(connection, series).items():
        by_rollout[series[id_].rollout].append((series[id_], state))
    pairs = pair_counts.counts(connection)
    return tuple(
        _overview(name, groups, pairs.get(name, 0)) for name, groups in sorted(by_rollout.items())
    )


def summary(
    connection: StoreConnection, rollout: str, window: rollup_reads.TimeWindow = rollup_reads.ALWAYS
) -> tuple[ArmSummary, ...]:
    """Return one summary per (cohort, arm), in that order; rows without a cohort come first.

    Latency covers successful generations; speculation sums cover generations with usable counts.
    `spec_steps` is None if any of those lacks its steps, because a ratio of sums over different
    generations would be wrong. Raises `NotFoundError` for an unknown rollout.
    """
    series = rollup_reads.series_of(connection, rollout)
    if not series:
        raise not_found(connection, rollout)
    wanted = _with_arm(series)
    found = [
        _arm_summary(*wanted[id_], state)
        for id_, state in rollup_reads.totals(connection, wanted, window).items()
    ]
    return tuple(sorted(found, key=_order))


def timeseries(
    connection: StoreConnection,
    rollout: str,
    window: rollup_reads.TimeWindow,
    step: rollup_reads.BucketLength,
    *,
    cohort: str | None = None,
    measured: bool = True,
) -> tuple[TimeBucket, ...]:
    """Return one bucket per (step, cohort, arm) in which a generation started, in that order.

    The window must consist of whole steps. Without `measured`, buckets have only counts. Raises
    `NotFoundError` for an unknown rollout, and `RequestError` if too many rows would be read.
    """
    series = rollup_reads.series_of(connection, rollout)
    if not series:
        raise not_found(connection, rollout)
    wanted = {
        id_: one
        for id_, one in _with_arm(series).items()
        if cohort is None or one.series.cohort == cohort
    }
    found = [
        TimeBucket(
            start_unix_s=start_unix_s,
            length_s=int(step),
            summary=_arm_summary(*wanted[id_], state),
        )
        for start_unix_s, id_, state in rollup_reads.buckets(
            connection, wanted, window, step, measured=measured
        )
    ]
    return tuple(sorted(found, key=lambda bucket: (bucket.start_unix_s, _order(bucket.summary))))


def require(connection: Connection, rollout: str) -> None:
    """Raise `NotFoundError`, naming the known rollouts, if this one has no generation."""
    if connection.scalar(select(g.c.id).where(g.c.rollout == rollout).limit(1)) is None:
        raise not_found(connection, rollout)


def not_found(connection: Connection, rollout: str) -> NotFoundError:
    """Return the error for a rollout without generations."""
    names = connection.scalars(select(s.c.rollout).distinct().order_by(s.c.rollout)).all()
    known = ", ".join(repr(name) for name in names) or "none yet: run one, or post its traces"
    return NotFoundError(f"no rollout {rollout!r}; known rollouts: {known}")


def _overview(name: str, groups: list[tuple[Series, RollupState]], pairs: int) -> RolloutOverview:
    drafted = [
        state.counts["spec_draft_tokens"]
        for series, state in groups
        if series.arm is not None and state.counts["usable_counts"]
    ]
    return RolloutOverview(
        rollout=name,
        first_start_unix_ns=min(state.first_start_unix_ns for _, state in groups),
        last_end_unix_ns=max(state.last_end_unix_ns for _, state in groups),
        baseline_generations=_generations(groups, Arm.BASELINE),
        candidate_generations=_generations(groups, Arm.CANDIDATE),
        pairs=pairs,
        cohorts=tuple(sorted({one.cohort for one, _ in groups if one.cohort is not None})),
        quality_flagged=sum(state.counts["flagged"] for _, state in groups),
        spec_draft_tokens=sum(drafted) if drafted else None,
    )


def _generations(groups: Iterable[tuple[Series, RollupState]], arm: Arm) -> int:
    return sum(state.counts["generations"] for series, state in groups if series.arm == arm)


def _order(summary: ArmSummary) -> tuple[bool, str, Arm]:
    return (summary.cohort is not None, summary.cohort or "", summary.arm)


def _with_arm(series: dict[int, Series]) -> dict[int, _OfArm]:
    return {id_: _OfArm(one, Arm(one.arm)) for id_, one in series.items() if one.arm is not None}


def _arm_summary(series: Series, arm: Arm, state: RollupState) -> ArmSummary:
    counts = state.counts
    metrics = {name: _metric(name, state) for name in state.moments}
    ttft, e2e = metrics.get("ttft_s"), metrics.get("e2e_s")
    usable = counts["usable_counts"]
    return ArmSummary(
        rollout=series.rollout,
        arm=arm,
        cohort=series.cohort,
        generations=counts["generations"],
        errors=counts["errors"],
        quality_flagged=counts["flagged"],
        fallbacks=counts["fallbacks"],
        retries=counts["retries"],
        input_tokens=counts["input_tokens"] if counts["with_input_tokens"] else None,
        output_tokens=counts["output_tokens"] if counts["with_output_tokens"] else None,
        ttft_s_sum=ttft.sum if ttft else None,
        ttft_s_count=ttft.n if ttft else 0,
        e2e_s_sum=e2e.sum if e2e else None,
        e2e_s_count=e2e.n if e2e else 0,
        spec_steps=counts["spec_steps"] if usable and counts["with_steps"] == usable else None,
        spec_draft_tokens=counts["spec_draft_tokens"] if usable else None,
        spec_accepted_tokens=counts["spec_accepted_tokens"] if usable else None,
        metrics=tuple(metrics.values()),
    )


def _metric(name: str, state: RollupState) -> MetricSummary:
    moments = state.moments[name]
    mean = moments.sum / moments.n
    # Σ(x − mean)² from the sums; rounding may make it slightly negative.
    spread = max(moments.squares - moments.n * mean * mean, 0.0)
    return MetricSummary(
        metric=name,
        n=moments.n,
        sum=moments.sum,
        mean=mean,
        stdev=math.sqrt(spread / (moments.n - 1)) if moments.n > 1 else None,
        min=moments.min,
        max=moments.max,
        p50=state.quantile(name, 0.50),
        p95=state.quantile(name, 0.95),
        p99=state.quantile(name, 0.99) if moments.n >= P99_FROM else None,
    )
