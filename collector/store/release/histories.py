"""Histories: a rollout's policies and verdicts, and earlier rollouts of the same candidate."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, select

from collector.contract import (
    Arm,
    CandidateIdentity,
    DatedVerdict,
    EarlierRollout,
    EarlierVerdict,
    RolloutHistory,
    StoredVerdict,
)
from collector.store import rollup_reads
from collector.store.release import policies, verdicts
from collector.store.row_records import record_of
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


def dated_verdicts(
    connection: Connection, rollout: str, *, same_candidate: bool, limit: int
) -> tuple[DatedVerdict, ...]:
    """Return the newest verdicts on a rollout, newest first.

    With `same_candidate`, also those on earlier rollouts of its candidate.
    """
    names = [rollout]
    if same_candidate and (ours := _candidate(connection, rollout)) is not None:
        names += [name for _, name in _earlier_rollouts(connection, rollout, ours)]
    found = [one for name in names for one in verdicts.newest(connection, name, limit=limit)]
    newest = sorted(found, key=lambda one: (one.posted_unix_ns, one.id), reverse=True)
    return tuple(_dated(connection, one) for one in newest[:limit])


def _before(connection: Connection, rollout: str, ours: _Candidate) -> tuple[EarlierRollout, ...]:
    """Return the rollouts of the same candidate that began earlier, oldest first."""
    found = _earlier_rollouts(connection, rollout, ours)
    return tuple(_rollout(connection, name) for _, name in found)


def _earlier_rollouts(
    connection: Connection, rollout: str, ours: _Candidate
) -> list[tuple[int, str]]:
    """Return them with the id of each one's first generation."""
    names = {
        s.rollout for s in rollup_reads.series_of(connection).values() if s.arm == Arm.CANDIDATE
    }
    found = ((name, _candidate(connection, name)) for name in names - {rollout})
    return sorted(
        (one.first_id, name)
        for name, one in found
        if one is not None and one.first_id < ours.first_id and _same(one.identity, ours.identity)
    )


def _rollout(connection: Connection, name: str) -> EarlierRollout:
    posted = verdicts.of_rollout(connection, name)
    outcome = posted[-1].verdict.outcome if posted else None
    return EarlierRollout(rollout=name, verdicts=len(posted), outcome=outcome)


def _candidate(connection: Connection, rollout: str) -> _Candidate | None:
    """Return the candidate as identified by its first successful generation; None without one."""
    return _one(connection, _successful(rollout).order_by(g.c.id))


def _dated(connection: Connection, stored: StoredVerdict) -> DatedVerdict:
    verdict = stored.verdict
    judged = [part for part in verdict.evidence if part.rollout == verdict.rollout]
    within = [g.c.start_unix_ns < stored.posted_unix_ns]
    if judged:
        within = [g.c.id > judged[0].arrived_after, g.c.id <= judged[0].arrived_up_to]
    seen = _successful(verdict.rollout).where(*within).order_by(g.c.id.desc())
    candidate = _one(connection, seen)
    return DatedVerdict(
        id=stored.id,
        rollout=verdict.rollout,
        posted_unix_ns=stored.posted_unix_ns,
        outcome=verdict.outcome,
        summary=verdict.summary,
        policy_name=verdict.policy_name,
        policy_hash=verdict.policy_hash,
        pairs=verdict.pairs,
        watch="watch" in verdict.versions,
        who=stored.who,
        candidate=None if candidate is None else candidate.identity,
    )


_CANDIDATE = (
    "provider", "request_model", "response_model", "fingerprint", "spec_method", "spec_draft_model",
    "spec_num_speculative_tokens", "engine_version",
)  # fmt: skip


def _successful(rollout: str) -> Select[Any]:
    ours = (g.c.rollout == rollout, g.c.arm == Arm.CANDIDATE.value, g.c.error_type.is_(None))
    return select(g.c.id, *(g.c[name] for name in _CANDIDATE)).where(*ours)


def _one(connection: Connection, ordered: Select[Any]) -> _Candidate | None:
    row = connection.execute(ordered.limit(1)).one_or_none()
    if row is None:
        return None
    model = row.response_model or row.request_model
    return _Candidate(row.id, record_of(CandidateIdentity, row, model=model))


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
