"""The state of the newest rollouts: last verdict, switch and ramp, and counts of the last hour.

Read for `GET /metrics`: a few rows per rollout, and no generation rows.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, Select, Table, func, select, union_all

from collector.contract import AcceptanceWatch, Arm, RampStep, StoredVerdict, SwitchState
from collector.store import rollup_reads
from collector.store.reader import StoreConnection
from collector.store.release import ramps, switches, verdicts, watches
from collector.store.rollups.state import RollupState
from collector.store.tables import ramp_step, registered_policy, switch_event, verdict

LATELY_S: Final = 3600
"""Length of the window of generations that are counted, rounded to minutes."""


class NewestRollouts(NamedTuple):
    """Rollouts with a registered policy, a verdict, a switch event or a ramp step."""

    names: tuple[str, ...]
    """The newest ones, by the time of the last of these."""
    left_out: int
    """The number of older ones."""


class RecentArmCounts(NamedTuple):
    """Counts of one arm over the last `LATELY_S`, over all cohorts."""

    rollout: str
    arm: Arm
    generations: int
    draft_tokens: int | None
    """None if no generation has usable speculation counts; so is `accepted_tokens`."""
    accepted_tokens: int | None


class RolloutStates(NamedTuple):
    """The state of rollouts; a rollout without a value is not in the mapping."""

    rollouts: NewestRollouts
    verdicts: Mapping[str, str]
    """Id of the newest verdict."""
    switches: Mapping[str, SwitchState]
    ramps: Mapping[str, RampStep]
    arms: tuple[RecentArmCounts, ...]
    """One entry per arm with a generation."""
    acceptance: Mapping[str, tuple[AcceptanceWatch, ...]]
    """Cohorts whose acceptance the last updated watch compares."""


def read(connection: StoreConnection, *, at_most: int, now_unix_s: float) -> RolloutStates:
    """Return the state of the newest rollouts, at most `at_most`."""
    rollouts = newest(connection, at_most=at_most)
    names = rollouts.names
    if not names:
        return RolloutStates(rollouts, {}, {}, {}, (), {})
    return RolloutStates(
        rollouts=rollouts,
        verdicts=verdicts.newest_ids(connection, names),
        switches=switches.newest_of_each(connection, names),
        ramps=ramps.newest_of_each(connection, names),
        arms=_arm_counts(connection, names, now_unix_s),
        acceptance=watches.acceptance_drifts(connection, names),
    )


def verdicts_of(connection: Connection, ids: Collection[str]) -> dict[str, StoredVerdict]:
    """Return these verdicts by id."""
    return {id_: verdicts.by_id(connection, id_) for id_ in ids}


def newest(connection: Connection, *, at_most: int) -> NewestRollouts:
    """Return the rollouts with the newest decisions."""
    judged = select(
        verdict.c.rollout, func.max(verdict.c.posted_unix_ns).label("time_unix_ns")
    ).group_by(verdict.c.rollout)
    decided = union_all(
        judged, *(_last_times(log) for log in (switch_event, ramp_step, registered_policy))
    ).subquery()
    last = func.max(decided.c.time_unix_ns)
    statement = (
        select(decided.c.rollout, func.count().over().label("known"))
        .group_by(decided.c.rollout)
        .order_by(last.desc(), decided.c.rollout)
        .limit(at_most)
    )
    rows = connection.execute(statement).all()
    names = tuple(row.rollout for row in rows)
    return NewestRollouts(names, rows[0].known - len(names) if rows else 0)


def _last_times(log: Table) -> Select[tuple[str, int]]:
    """Return the time of each rollout's last row in an audit log."""
    last = select(func.max(log.c.id)).group_by(log.c.rollout)
    return select(log.c.rollout, log.c.time_unix_ns).where(log.c.id.in_(last))


def _arm_counts(
    connection: StoreConnection, names: Collection[str], now_unix_s: float
) -> tuple[RecentArmCounts, ...]:
    arms = {
        id_: (name, Arm(one.arm))
        for name in names
        for id_, one in rollup_reads.series_of(connection, name).items()
        if one.arm is not None
    }
    lately = rollup_reads.window(now_unix_s - LATELY_S, None, rollup_reads.BucketLength.MINUTE)
    found = rollup_reads.counts(connection, arms, lately)
    states: dict[tuple[str, Arm], list[RollupState]] = {
        arm: [] for arm in sorted(set(arms.values()))
    }
    for id_, state in found.items():
        states[arms[id_]].append(state)
    return tuple(_counts(*arm, of_arm) for arm, of_arm in states.items())


def _counts(rollout: str, arm: Arm, states: Collection[RollupState]) -> RecentArmCounts:
    def total(name: str) -> int:
        return sum(state.counts[name] for state in states)

    usable = total("usable_counts")
    return RecentArmCounts(
        rollout,
        arm,
        generations=total("generations"),
        draft_tokens=total("spec_draft_tokens") if usable else None,
        accepted_tokens=total("spec_accepted_tokens") if usable else None,
    )
