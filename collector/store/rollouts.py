"""Reads of rollouts: what is held of each, and counts and sums of each arm in each cohort."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, select

from collector.contract import Arm, ArmSummary, RolloutOverview
from collector.errors import NotFoundError
from collector.store.tables import generation as g

_LOW_BITS = 32


def overviews(connection: Connection) -> tuple[RolloutOverview, ...]:
    """Return every rollout that has a generation, by name."""
    flagged = func.sum(case((g.c.quality != "[]", 1), else_=0))
    rows = connection.execute(
        select(
            g.c.rollout,
            g.c.arm,
            g.c.cohort,
            func.count().label("n"),
            func.min(g.c.start_unix_ns).label("first"),
            func.max(g.c.end_unix_ns).label("last"),
            flagged.label("flagged"),
        )
        .where(g.c.rollout.is_not(None))
        .group_by(g.c.rollout, g.c.arm, g.c.cohort)
    )
    by_rollout: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        by_rollout[row.rollout].append(row)
    pairs = _pair_counts(connection)
    return tuple(
        _overview(name, groups, pairs.get(name, 0)) for name, groups in sorted(by_rollout.items())
    )


def summary(connection: Connection, rollout: str) -> tuple[ArmSummary, ...]:
    """Return one row for each (cohort, arm), by cohort then arm; no cohort stands first.

    Latency sums are over generations that succeeded; speculation sums over those whose counts are
    usable. `spec_steps` is None where one of those lacks its steps, for a ratio of sums over
    different generations would be false. Raises `NotFoundError` for an unknown rollout.
    """
    require(connection, rollout)
    succeeded = g.c.error_type.is_(None)
    ttft_s = case((succeeded, g.c.ttft_s))
    e2e_s = case(
        (
            and_(succeeded, g.c.end_unix_ns >= g.c.start_unix_ns),
            (g.c.end_unix_ns - g.c.start_unix_ns) / 1e9,
        )
    )
    usable = g.c.counts_usable
    steps = case((usable, g.c.spec_steps))
    rows = connection.execute(
        select(
            g.c.cohort,
            g.c.arm,
            func.count().label("generations"),
            func.count(g.c.error_type).label("errors"),
            func.sum(ttft_s).label("ttft_s_sum"),
            func.count(ttft_s).label("ttft_s_count"),
            func.sum(e2e_s).label("e2e_s_sum"),
            func.count(e2e_s).label("e2e_s_count"),
            func.count(steps).label("with_steps"),
            func.sum(case((usable, 1), else_=0)).label("usable"),
            *_exact_sum("input_tokens", g.c.input_tokens),
            *_exact_sum("output_tokens", g.c.output_tokens),
            *_exact_sum("spec_steps", steps),
            *_exact_sum("spec_draft_tokens", case((usable, g.c.spec_draft_tokens))),
            *_exact_sum("spec_accepted_tokens", case((usable, g.c.spec_accepted_tokens))),
        )
        .where(g.c.rollout == rollout, g.c.arm.is_not(None))
        .group_by(g.c.cohort, g.c.arm)
    )
    found = [_arm_summary(rollout, row) for row in rows]
    return tuple(sorted(found, key=lambda s: (s.cohort is not None, s.cohort or "", s.arm)))


def require(connection: Connection, rollout: str) -> None:
    """Raise `NotFoundError`, naming the known rollouts, where no generation belongs to this one."""
    if connection.scalar(select(g.c.id).where(g.c.rollout == rollout).limit(1)) is None:
        raise not_found(connection, rollout)


def not_found(connection: Connection, rollout: str) -> NotFoundError:
    """Return the error for a rollout that nothing is stored of."""
    names = connection.scalars(
        select(g.c.rollout).where(g.c.rollout.is_not(None)).distinct().order_by(g.c.rollout)
    ).all()
    known = ", ".join(repr(name) for name in names) or "none yet: run one, or post its traces"
    return NotFoundError(f"no rollout {rollout!r}; known rollouts: {known}")


def _pair_counts(connection: Connection) -> dict[str, int]:
    both = (
        select(g.c.rollout)
        .where(
            g.c.rollout.is_not(None),
            g.c.prompt_id.is_not(None),
            g.c.repeat.is_not(None),
            g.c.arm.is_not(None),
        )
        .group_by(g.c.rollout, g.c.prompt_id, g.c.repeat)
        .having(func.count(g.c.arm.distinct()) == 2)
        .subquery()
    )
    rows = connection.execute(select(both.c.rollout, func.count()).group_by(both.c.rollout))
    return {name: count for name, count in rows}  # noqa: C416  # rows are not pairs to mypy


def _overview(name: str, groups: Sequence[Row[Any]], pairs: int) -> RolloutOverview:
    return RolloutOverview(
        rollout=name,
        first_start_unix_ns=min(row.first for row in groups),
        last_end_unix_ns=max(row.last for row in groups),
        baseline_generations=sum(row.n for row in groups if row.arm == Arm.BASELINE),
        candidate_generations=sum(row.n for row in groups if row.arm == Arm.CANDIDATE),
        pairs=pairs,
        cohorts=tuple(sorted({row.cohort for row in groups if row.cohort is not None})),
        quality_flagged=sum(row.flagged for row in groups),
    )


def _exact_sum(name: str, column: ColumnElement[int | None]) -> tuple[ColumnElement[int], ...]:
    """Return two sums that `_joined` makes one of: a plain sum of int64 may overflow int64."""
    high = func.sum(column.bitwise_rshift(_LOW_BITS))
    low = func.sum(column.bitwise_and(2**_LOW_BITS - 1))
    return (high.label(f"{name}_high"), low.label(f"{name}_low"))


def _joined(row: Row[Any], name: str) -> int | None:
    high, low = getattr(row, f"{name}_high"), getattr(row, f"{name}_low")
    return None if high is None else int(high) * 2**_LOW_BITS + int(low)


def _arm_summary(rollout: str, row: Row[Any]) -> ArmSummary:
    return ArmSummary(
        rollout=rollout,
        arm=Arm(row.arm),
        cohort=row.cohort,
        generations=row.generations,
        errors=row.errors,
        input_tokens=_joined(row, "input_tokens"),
        output_tokens=_joined(row, "output_tokens"),
        ttft_s_sum=row.ttft_s_sum,
        ttft_s_count=row.ttft_s_count,
        e2e_s_sum=row.e2e_s_sum,
        e2e_s_count=row.e2e_s_count,
        spec_steps=_joined(row, "spec_steps") if row.with_steps == row.usable else None,
        spec_draft_tokens=_joined(row, "spec_draft_tokens"),
        spec_accepted_tokens=_joined(row, "spec_accepted_tokens"),
    )
