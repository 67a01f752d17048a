"""Histories: a rollout's policies and verdicts, and earlier rollouts of the same candidate."""

from typing import NamedTuple

from sqlalchemy import Connection, select

from collector.contract import (
    Arm,
    CandidateIdentity,
    EarlierRollout,
    EarlierVerdict,
    RolloutHistory,
    StoredVerdict,
)
from collector.store import policies, rollup_reads, verdicts
from collector.store.tables import generation as g


class _Candidate(NamedTuple):
    first_id: int
    identity: CandidateIdentity


def of_rollout(connection: Connection, rollout: str) -> RolloutHistory:
    """Return a rollout's history; empty if nothing is stored for the rollout."""
    registrations = policies.of_rollout(connection, rollout)
    ours = _candidate(connection, rollout)
    return RolloutHistory(
        rollout=rollout,
        registrations=registrations,
        registered=policies.in_force(registrations),
        candidate=None if ours is None else ours.identity,
        verdicts=tuple(map(_earlier, verdicts.of_rollout(connection, rollout))),
        rollouts=() if ours is None else _before(connection, rollout, ours),
    )


def _before(connection: Connection, rollout: str, ours: _Candidate) -> tuple[EarlierRollout, ...]:
    """Return the rollouts of the same candidate that began earlier, oldest first."""
    names = {
        s.rollout for s in rollup_reads.series_of(connection).values() if s.arm == Arm.CANDIDATE
    }
    found = ((name, _candidate(connection, name)) for name in names - {rollout})
    earlier = sorted(
        (one.first_id, name)
        for name, one in found
        if one is not None and one.first_id < ours.first_id and _same(one.identity, ours.identity)
    )
    return tuple(_rollout(connection, name) for _, name in earlier)


def _rollout(connection: Connection, name: str) -> EarlierRollout:
    posted = verdicts.of_rollout(connection, name)
    outcome = posted[-1].verdict.outcome if posted else None
    return EarlierRollout(rollout=name, verdicts=len(posted), outcome=outcome)


def _candidate(connection: Connection, rollout: str) -> _Candidate | None:
    """Return the candidate as identified by its first successful generation; None without one."""
    row = connection.execute(
        select(
            g.c.id,
            g.c.provider,
            g.c.request_model,
            g.c.response_model,
            g.c.fingerprint,
            g.c.spec_method,
            g.c.spec_draft_model,
            g.c.spec_num_speculative_tokens,
        )
        .where(g.c.rollout == rollout, g.c.arm == Arm.CANDIDATE.value, g.c.error_type.is_(None))
        .order_by(g.c.id)
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    identity = CandidateIdentity(
        provider=row.provider,
        model=row.response_model or row.request_model,
        fingerprint=row.fingerprint,
        spec_method=row.spec_method,
        spec_draft_model=row.spec_draft_model,
        spec_num_speculative_tokens=row.spec_num_speculative_tokens,
    )
    return _Candidate(row.id, identity)


def _same(one: CandidateIdentity, other: CandidateIdentity) -> bool:
    differ = {one.fingerprint, other.fingerprint} - {None}
    return len(differ) <= 1 and _but_fingerprint(one) == _but_fingerprint(other)


def _but_fingerprint(identity: CandidateIdentity) -> tuple[str | int | None, ...]:
    return (
        identity.provider,
        identity.model,
        identity.spec_method,
        identity.spec_draft_model,
        identity.spec_num_speculative_tokens,
    )


def _earlier(stored: StoredVerdict) -> EarlierVerdict:
    verdict = stored.verdict
    judged = [p.arrived_after for p in verdict.evidence if p.rollout == verdict.rollout]
    return EarlierVerdict(
        id=stored.id,
        rollout=verdict.rollout,
        outcome=verdict.outcome,
        policy_name=verdict.policy_name,
        policy_hash=verdict.policy_hash,
        pairs=verdict.pairs,
        data_hash=verdict.data_hash,
        arrived_after=judged[0] if judged else None,
        watch="watch" in verdict.versions,
    )
