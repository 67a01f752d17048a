"""Where the newest rollouts stand: their last verdict, switch and ramp, and what arrived lately.

Read for `GET /metrics`: a few rows of each rollout, and no row of a generation.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, Select, Table, func, select, union_all

from collector.contract import Arm, RampStep, StoredVerdict, SwitchState
from collector.store import ramps, rollup_reads, switches, verdicts
from collector.store.reader import StoreConnection
from collector.store.rollups.state import State
from collector.store.tables import ramp_step, registered_policy, switch_event, verdict

LATELY_S: Final = 3600
"""Generations count that began in so many seconds, to the minute."""


class NewestRollouts(NamedTuple):
    """Rollouts that somebody decided something of: a policy, a verdict, a switch, or a step."""

    names: tuple[str, ...]
    """The newest of them, by the time of the last decision."""
    left_out: int
    """Older ones."""


class ArmCounts(NamedTuple):
    """What arrived of one arm lately, of all cohorts."""

    rollout: str
    arm: Arm
    generations: int
    draft_tokens: int | None
    """None if no generation has usable counts of speculation; so are the accepted ones."""
    accepted_tokens: int | None


class RolloutStates(NamedTuple):
    """What is stored of rollouts; whoever is not in a mapping has none of it."""

    rollouts: NewestRollouts
    verdicts: Mapping[str, str]
    """Id of the newest verdict."""
    switches: Mapping[str, SwitchState]
    ramps: Mapping[str, RampStep]
    arms: tuple[ArmCounts, ...]
    """One for each arm that any generation names."""


def read(connection: StoreConnection, *, at_most: int, now_unix_s: float) -> RolloutStates:
    """Return where the newest rollouts stand, so many at most."""
    rollouts = newest(connection, at_most=at_most)
    names = rollouts.names
    if not names:
        return RolloutStates(rollouts, {}, {}, {}, ())
    return RolloutStates(
        rollouts=rollouts,
        verdicts=verdicts.newest_ids(connection, names),
        switches=switches.newest_of_each(connection, names),
        ramps=ramps.newest_of_each(connection, names),
        arms=_arm_counts(connection, names, now_unix_s),
    )


def verdicts_of(connection: Connection, ids: Collection[str]) -> dict[str, StoredVerdict]:
    """Return these verdicts by id."""
    return {id_: verdicts.by_id(connection, id_) for id_ in ids}


def newest(connection: Connection, *, at_most: int) -> NewestRollouts:
    """Return the rollouts that something was decided of last."""
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
    """Return when the last row of each rollout was added to an audit log."""
    last = select(func.max(log.c.id)).group_by(log.c.rollout)
    return select(log.c.rollout, log.c.time_unix_ns).where(log.c.id.in_(last))


def _arm_counts(
    connection: StoreConnection, names: Collection[str], now_unix_s: float
) -> tuple[ArmCounts, ...]:
    arms = {
        id_: (name, Arm(one.arm))
        for name in names
        for id_, one in rollup_reads.series_of(connection, name).items()
        if one.arm is not None
    }
    lately = rollup_reads.window(now_unix_s - LATELY_S, None, rollup_reads.BucketLength.MINUTE)
    found = rollup_reads.counts(connection, arms, lately)
    states: dict[tuple[str, Arm], list[State]] = {arm: [] for arm in sorted(set(arms.values()))}
    for id_, state in found.items():
        states[arms[id_]].append(state)
    return tuple(_counts(*arm, of_arm) for arm, of_arm in states.items())


def _counts(rollout: str, arm: Arm, states: Collection[State]) -> ArmCounts:
    def total(name: str) -> int:
        return sum(state.counts[name] for state in states)

    usable = total("usable_counts")
    return ArmCounts(
        rollout,
        arm,
        generations=total("generations"),
        draft_tokens=total("spec_draft_tokens") if usable else None,
        accepted_tokens=total("spec_accepted_tokens") if usable else None,
    )
