"""Leases on generations without scores: in the order of arrival, and taken over once they expire.

For each rollout and set of evaluators there is a place up to which generations were handed out, and
a row for each piece that is not done yet. A piece is a range of ids, so that neither grows with the
number of generations. Every time is by the database's clock.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, update

from collector.contract import Generation, LeasedEvaluator, LeaseRequest, Pair, Score
from collector.errors import ConflictError
from collector.store import clock, generations, pairs, rollouts, scores
from collector.store.generation_rows import Row
from collector.store.reader import StoreConnection
from collector.store.tables import evaluation as e
from collector.store.tables import evaluation_lease as held
from collector.store.tables import generation as g

_NS: Final = 1_000_000_000
_ID_BYTES: Final = 16


class LeasedRange(NamedTuple):
    """A leased piece of a rollout: its generations with ids in (after, up_to]."""

    id: str
    after: int
    up_to: int


class Leased(NamedTuple):
    """Generations and pairs to score, and the scores that they have."""

    generations: tuple[Generation, ...]
    pairs: tuple[Pair, ...]
    scores: tuple[Score, ...]


def take(connection: Connection, wanted: LeaseRequest) -> LeasedRange | None:
    """Lease the oldest piece that has expired, else the next generations; None if none are left.

    The transaction must exclude other writers. Raises `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, wanted.rollout)
    evaluators = _digest(wanted.evaluators)
    piece = _expired(connection, wanted.rollout, evaluators)
    if piece is not None:
        connection.execute(delete(held).where(held.c.id == piece.id))
    else:
        piece = _next(connection, wanted, evaluators)
        if piece is None:
            return None
    piece = piece._replace(id=secrets.token_hex(_ID_BYTES))
    now = clock.now_unix_ns(connection)
    connection.execute(
        insert(held).values(
            **piece._asdict(),
            rollout=wanted.rollout,
            evaluators=evaluators,
            worker=wanted.worker,
            taken_unix_ns=now,
            expires_unix_ns=now + int(wanted.ttl_s * _NS),
        )
    )
    return piece


def read(
    connection: StoreConnection, wanted: LeaseRequest, piece: LeasedRange, *, content: bool
) -> Leased:
    """Return the generations, pairs and scores of the piece."""
    ids, found = generations.between(
        connection, wanted.rollout, piece.after, piece.up_to, content=content
    )
    completed: tuple[pairs.Completed, ...] = ()
    if wanted.pairs:
        completed = pairs.completed(
            connection, wanted.rollout, piece.after, piece.up_to, content=content
        )
    judged = {*ids, *(one.candidate_id for one in completed)}
    known = scores.of_generations(connection, sorted(judged))
    return Leased(
        found,
        tuple(one.pair for one in completed),
        tuple(score for of_one in known.values() for score in of_one),
    )


def renew(connection: Connection, id_: str, ttl_s: float) -> None:
    """Let a lease last so long from now on; 0 gives it back.

    Raises `ConflictError` if it is done, or is somebody else's by now.
    """
    now = clock.now_unix_ns(connection)
    changed = connection.execute(
        update(held)
        .where(held.c.id == id_)
        .values(taken_unix_ns=now, expires_unix_ns=now + int(ttl_s * _NS))
    )
    if not changed.rowcount:
        raise _lost(id_)


def finish(connection: Connection, id_: str) -> None:
    """Note that all of a lease is scored; raises `ConflictError` as `renew`."""
    if not connection.execute(delete(held).where(held.c.id == id_)).rowcount:
        raise _lost(id_)


def add_late(connection: Connection, rows: Iterable[Row]) -> None:
    """Have generations handed out that are stored below what was handed out already."""
    for row in rows:
        if "rollout" not in row:
            continue
        passed = select(e).where(e.c.rollout == row["rollout"], e.c.up_to >= row["id"])
        for place in connection.execute(passed).all():
            connection.execute(
                insert(held).values(
                    id=secrets.token_hex(_ID_BYTES),
                    rollout=row["rollout"],
                    evaluators=place.evaluators,
                    after=row["id"] - 1,
                    up_to=row["id"],
                    worker="",
                    taken_unix_ns=0,
                    expires_unix_ns=0,
                )
            )


def _expired(connection: Connection, rollout: str, evaluators: str) -> LeasedRange | None:
    row = connection.execute(
        select(held.c.id, held.c.after, held.c.up_to)
        .where(held.c.rollout == rollout, held.c.evaluators == evaluators)
        .where(_is_over(clock.now_unix_ns(connection)))
        .order_by(held.c.after)
        .limit(1)
    ).one_or_none()
    return None if row is None else LeasedRange(*row)


def _is_over(now_unix_ns: int) -> ColumnElement[bool]:
    # One that was taken in the future is of a clock that was set back since, and not waited for.
    return or_(held.c.expires_unix_ns <= now_unix_ns, held.c.taken_unix_ns > now_unix_ns)


def _next(connection: Connection, wanted: LeaseRequest, evaluators: str) -> LeasedRange | None:
    is_ours = (e.c.rollout == wanted.rollout, e.c.evaluators == evaluators)
    after = connection.scalar(select(e.c.up_to).where(*is_ours))
    ids = connection.scalars(
        select(g.c.id)
        .where(g.c.rollout == wanted.rollout, g.c.id > (after or 0))
        .order_by(g.c.id)
        .limit(wanted.generations)
    ).all()
    if not ids:
        return None
    if after is None:
        values = {"rollout": wanted.rollout, "evaluators": evaluators, "up_to": ids[-1]}
        connection.execute(insert(e).values(**values))
    else:
        connection.execute(update(e).where(*is_ours).values(up_to=ids[-1]))
    return LeasedRange("", after or 0, ids[-1])


def _digest(evaluators: Iterable[LeasedEvaluator]) -> str:
    names = sorted({(one.metric, one.evaluator, one.version) for one in evaluators})
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()


def _lost(id_: str) -> ConflictError:
    return ConflictError(
        f"lease {id_!r}: is done, or has expired and is somebody else's by now; ask for another"
    )
