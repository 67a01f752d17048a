"""Notifications of changed verdicts, written to the outbox."""

import json
from typing import Final

from sqlalchemy import Connection, select

from collector.contract import (
    Notification,
    NotificationType,
    Outcome,
    StoredVerdict,
    Verdict,
    from_document,
)
from collector.store import notifications
from collector.store.tables import verdict as v

_BACK: Final = 50
"""Most earlier verdicts that are searched for the previous one."""


def notify(connection: Connection, stored: StoredVerdict) -> None:
    """Add a notification if the verdict's outcome differs from the previous one under its policy.

    Only verdicts that may move a ramp count: a watch's pass or inconclusive is ignored.
    """
    verdict = stored.verdict
    if not verdict.moves_ramp:
        return
    before = _outcome_before(connection, stored)
    if before is verdict.outcome:
        return
    notifications.add(
        connection,
        Notification(
            id=notifications.new_id(),
            type=NotificationType.VERDICT_CHANGED,
            rollout=verdict.rollout,
            time_unix_ns=stored.posted_unix_ns,
            before=None if before is None else before.value,
            after=verdict.outcome.value,
            summary=verdict.summary,
            who=stored.who,
            verdict=stored.id,
            policy_name=verdict.policy_name,
            policy_hash=verdict.policy_hash,
        ),
    )


def _outcome_before(connection: Connection, stored: StoredVerdict) -> Outcome | None:
    statement = (
        select(v.c.document)
        .where(v.c.rollout == stored.verdict.rollout, v.c.id != stored.id)
        .order_by(v.c.posted_unix_ns.desc(), v.c.id)
        .limit(_BACK)
    )
    for document in connection.scalars(statement):
        earlier = from_document(Verdict, json.loads(document))
        if earlier.moves_ramp and earlier.policy_hash == stored.verdict.policy_hash:
            return earlier.outcome
    return None
