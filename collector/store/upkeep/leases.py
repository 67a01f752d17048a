"""Evaluation leases: generations handed out to evaluator workers in the order of arrival.

For each rollout and set of evaluators, one row stores the id up to which generations were handed
out, and one row per lease stores a range of ids that is not done yet; so the tables do not grow
with the number of generations. An expired lease is handed out again. All times are of the
database's clock.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, update

from collector.contract import Generation, LeasedEvaluator, LeaseRequest, Pair, Score
from collector.errors import ConflictError
from collector.store import clock, rollouts, scores
from collector.store.evidence import generations, pairs
from collector.store.evidence.generations import ContentOf
from collector.store.generation_rows import Row
from collector.store.reader import StoreConnection
from collector.store.tables import evaluation as e
from collector.store.tables import evaluation_lease as lease
from collector.store.tables import generation as g

_NS: Final = 1_000_000_000
_ID_BYTES: Final = 16


class LeasedRange(NamedTuple):
    """A leased range of a rollout: its generations with ids in (after, up_to]."""

    id: str
    after: int
    up_to: int


class Leased(NamedTuple):
    """Generations and pairs to score, and their existing scores."""

    generations: tuple[Generation, ...]
    pairs: tuple[Pair, ...]
    scores: tuple[Score, ...]


def take(connection: Connection, wanted: LeaseRequest) -> LeasedRange | None:
    """Lease the oldest expired range, else the next generations; None if none are left.

    The transaction must exclude other writers. Raises `NotFoundError` for an unknown rollout.
    """
    rollouts.require(connection, wanted.rollout)
    evaluators = _digest(wanted.evaluators)
    piece = _expired(connection, wanted.rollout, evaluators)
    if piece is not None:
        connection.execute(delete(lease).where(lease.c.id == piece.id))
    else:
        piece = _next(connection, wanted, evaluators)
        if piece is None:
            return None
    piece = piece._replace(id=secrets.token_hex(_ID_BYTES))
    now = clock.now_unix_ns(connection)
    connection.execute(
        insert(lease).values(
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
    connection: StoreConnection,
    wanted: LeaseRequest,
    piece: LeasedRange,
    *,
    content_of: ContentOf | None,
) -> Leased:
    """Return the generations, pairs and scores of the leased range."""
    ids, found = generations.between(
        connection, wanted.rollout, piece.after, piece.up_to, content_of=content_of
    )
    completed: tuple[pairs.Completed, ...] = ()
    if wanted.pairs:
        completed = pairs.completed(
            connection, wanted.rollout, piece.after, piece.up_to, content_of=content_of
        )
    judged = {*ids, *(one.candidate_id for one in completed)}
    known = scores.of_generations(connection, sorted(judged))
    return Leased(
        found,
        tuple(one.pair for one in completed),
        tuple(score for of_one in known.values() for score in of_one),
    )


def renew(connection: Connection, id_: str, ttl_s: float) -> None:
    """Extend a lease to `ttl_s` seconds from now; 0 releases it.

    Raises `ConflictError` if it is finished, or was taken over after it expired.
    """
    now = clock.now_unix_ns(connection)
    changed = connection.execute(
        update(lease)
        .where(lease.c.id == id_)
        .values(taken_unix_ns=now, expires_unix_ns=now + int(ttl_s * _NS))
    )
    if not changed.rowcount:
        raise _lost(id_)


def finish(connection: Connection, id_: str) -> None:
    """Delete a lease whose generations are all scored; raises `ConflictError` as `renew`."""
    if not connection.execute(delete(lease).where(lease.c.id == id_)).rowcount:
        raise _lost(id_)


def add_late(connection: Connection, rows: Iterable[Row]) -> None:
    """Add an expired lease for each generation whose id is below the id handed out so far.

    Otherwise no worker would get a generation that is stored late.
    """
    for row in rows:
        if "rollout" not in row:
            continue
        passed = select(e).where(e.c.rollout == row["rollout"], e.c.up_to >= row["id"])
        for place in connection.execute(passed).all():
            connection.execute(
                insert(lease).values(
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
        select(lease.c.id, lease.c.after, lease.c.up_to)
        .where(lease.c.rollout == rollout, lease.c.evaluators == evaluators)
        .where(_is_over(clock.now_unix_ns(connection)))
        .order_by(lease.c.after)
        .limit(1)
    ).one_or_none()
    return None if row is None else LeasedRange(*row)


def _is_over(now_unix_ns: int) -> ColumnElement[bool]:
    # A lease taken in the future means that the clock was set back since: do not wait for it.
    return or_(lease.c.expires_unix_ns <= now_unix_ns, lease.c.taken_unix_ns > now_unix_ns)


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
