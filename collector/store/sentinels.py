"""The requests of a rollout's sentinels, which pair with nothing and count in no rollup."""

from sqlalchemy import Connection, select

from collector.contract import Arm, SentinelAsk
from collector.store.tables import generation as g


def asks(
    connection: Connection, rollout: str, *, arrived_after: int, arrived_up_to: int
) -> list[SentinelAsk]:
    """Return the requests that arrived between these ids, in the order in which they were sent."""
    rows = connection.execute(
        select(
            g.c.sentinel,
            g.c.arm,
            g.c.repeat,
            g.c.start_unix_ns,
            g.c.trace_id,
            g.c.launch,
            g.c.sentinel_after,
            g.c.sentinel_answer,
        ).where(
            g.c.rollout == rollout,
            g.c.prompt_id.is_(None),
            g.c.sentinel.is_not(None),
            g.c.arm.is_not(None),
            g.c.id > arrived_after,
            g.c.id <= arrived_up_to,
        )
    )
    found = (
        SentinelAsk(
            sentinel=row.sentinel,
            arm=Arm(row.arm),
            number=row.repeat,
            start_unix_ns=row.start_unix_ns,
            trace_id=row.trace_id.hex(),
            launch=row.launch,
            after=row.sentinel_after,
            answer=row.sentinel_answer,
        )
        for row in rows
    )
    return sorted(found, key=lambda ask: (ask.start_unix_ns, ask.trace_id, ask.sentinel))
