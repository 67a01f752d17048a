"""Generations that do not pair, grouped by the reason: usually an attribute the sender left out.

Reads only the newest generations, so that its duration does not grow with the store.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import select

from collector.contract import Arm, Unpaired, UnpairedReason
from collector.contract import attributes as a
from collector.store.reader import StoreConnection
from collector.store.tables import generation as g

LOOKED_AT: Final = 20_000
"""How many of the newest generations are read."""
_ATTRIBUTES: Final = {
    UnpairedReason.NO_ROLLOUT: (g.c.rollout, a.DRAFTGATE_ROLLOUT),
    UnpairedReason.NO_ARM: (g.c.arm, a.DRAFTGATE_ARM),
    UnpairedReason.NO_PROMPT_ID: (g.c.prompt_id, a.DRAFTGATE_PROMPT_ID),
    UnpairedReason.NO_REPEAT: (g.c.repeat, a.DRAFTGATE_REPEAT),
}
"""Reasons by the first of these attributes that a generation lacks."""
_COLUMNS: Final = (
    g.c.rollout,
    g.c.arm,
    g.c.prompt_id,
    g.c.repeat,
    g.c.own_history,
    g.c.sentinel,
    g.c.service_name,
    g.c.provider,
    g.c.dialect,
    g.c.quality,
    g.c.start_unix_ns,
    g.c.trace_id,
    g.c.span_id,
)


class Findings(NamedTuple):
    """Groups of unpaired generations."""

    groups: tuple[Unpaired, ...]
    """The largest first."""
    looked_at: int
    """How many generations were read."""


def find(connection: StoreConnection, rollout: str | None = None) -> Findings:
    """Group the unpaired ones among the newest generations, of all rollouts or one.

    If there are `LOOKED_AT` generations or more, a missing other side is not reported: it may be
    older than those that were read.
    """
    statement = select(*_COLUMNS).order_by(g.c.id.desc()).limit(LOOKED_AT)
    if rollout is not None:
        statement = statement.where(g.c.rollout == rollout)
    rows = connection.execute(statement).all()
    arms = _arms(rows) if len(rows) < LOOKED_AT else None
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        reason = _reason(row, arms)
        if reason is not None:
            key = (reason, row.rollout, row.arm, row.service_name, row.provider, row.dialect)
            groups.setdefault((*key, _unreadable(row)), []).append(row)
    found = (_group(key, members) for key, members in groups.items())
    return Findings(tuple(sorted(found, key=lambda one: -one.generations)), len(rows))


# Any: a row of `_COLUMNS`, or a value of one.


def _arms(rows: Iterable[Any]) -> Mapping[tuple[Any, ...], set[str]]:
    """Return the arms with a generation, by (rollout, prompt id, repeat)."""
    found: dict[tuple[Any, ...], set[str]] = {}
    for row in rows:
        found.setdefault((row.rollout, row.prompt_id, row.repeat), set()).add(row.arm)
    return found


def _reason(row: Any, arms: Mapping[tuple[Any, ...], set[str]] | None) -> UnpairedReason | None:
    if row.own_history and row.prompt_id is None:
        return None  # an earlier turn: the session's last one is its pair
    if row.sentinel is not None:
        return None
    for reason, (column, _) in _ATTRIBUTES.items():
        if getattr(row, column.name) is None:
            return reason
    if arms is None or len(arms[row.rollout, row.prompt_id, row.repeat] - {None}) == len(Arm):
        return None
    return UnpairedReason.NO_OTHER_ARM


def _unreadable(row: Any) -> tuple[str, ...]:
    """Return the pairing attributes that were sent with an unreadable value."""
    flags = set(json.loads(row.quality)) if row.quality else set()
    names = (attribute for _, attribute in _ATTRIBUTES.values())
    return tuple(name for name in names if f"type:{name}" in flags)


def _group(key: tuple[Any, ...], members: list[Any]) -> Unpaired:
    reason, rollout, arm, service_name, provider, dialect, unreadable = key
    newest = members[0]
    return Unpaired(
        reason=reason,
        rollout=rollout,
        arm=None if arm is None else Arm(arm),
        service_name=service_name,
        provider=provider,
        dialect=dialect,
        unreadable=unreadable,
        generations=len(members),
        last_start_unix_ns=max(row.start_unix_ns for row in members),
        trace_id=newest.trace_id.hex(),
        span_id=newest.span_id.hex(),
    )
