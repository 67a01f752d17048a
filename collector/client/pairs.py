"""Pairs, their regressions, and their changes."""

from typing import NamedTuple

import pyarrow as pa

from collector.client.connection import Query
from collector.client.resource import Resource
from collector.contract import Pair, Regression, Unpaired


class PairPage(NamedTuple):
    """Pairs by prompt id and repeat."""

    pairs: tuple[Pair, ...]
    next: str | None
    """Pass it as `after` for the next page; None on the last."""


class RegressionPage(NamedTuple):
    """Pairs whose candidate scored lower, the greatest loss first."""

    regressions: tuple[Regression, ...]
    next: str | None
    """Pass it as `after` for the next page; None on the last."""
    metrics: tuple[str, ...]
    """All that a pair of the rollout lost in."""
    counted: int
    """All that were asked for, up to `counted_at_most`."""
    counted_at_most: int
    waiting_scores: int
    """Posts of scores, of any rollout, that are not in this order yet."""


class PairChanges(NamedTuple):
    """What is new of a rollout's pairs, and if to ask on."""

    table: pa.Table
    arrived_up_to: int
    scored_up_to: int
    more: bool
    """Whether anything stands after it already."""


class PairRequests(Resource):
    """Pairs, their regressions, and their changes."""

    def pairs(
        self,
        rollout: str,
        *,
        cohort: str | None = None,
        content: bool = False,
        limit: int = 100,
        after: str | None = None,
    ) -> PairPage:
        """Return a page of at most `limit` (1 to 1000) pairs with their scores."""
        query = {
            "rollout": rollout,
            "cohort": cohort,
            "content": content,
            "limit": limit,
            "after": after,
        }
        body = self._connection.get("/api/v1/pairs", query)
        return PairPage(self._connection.records(Pair, body, "pairs"), body["next"])

    def pair(
        self, rollout: str, prompt_id: str, repeat: int, *, content: bool = False
    ) -> Pair | None:
        """Return one pair with its scores; None if neither side is stored."""
        query: Query = {
            "rollout": rollout,
            "prompt_id": prompt_id,
            "repeat": repeat,
            "content": content,
        }
        found = self._connection.records(
            Pair, self._connection.get("/api/v1/pairs", query), "pairs"
        )
        return next(iter(found), None)

    def unpaired(self, rollout: str | None = None) -> tuple[Unpaired, ...]:
        """Return what does not pair among the newest generations, by reason and sender.

        Of all, or of one rollout; the most frequent first.
        """
        body = self._connection.get("/api/v1/unpaired", {"rollout": rollout})
        return self._connection.records(Unpaired, body, "unpaired")

    def regressions(
        self,
        rollout: str,
        *,
        cohort: str | None = None,
        metric: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> RegressionPage:
        """Return a page of at most `limit` (1 to 1000) pairs whose candidate scored lower.

        The greatest loss stands first: in the metric, or in the one that a pair lost most in.
        """
        query: Query = {
            "rollout": rollout,
            "cohort": cohort,
            "metric": metric,
            "limit": limit,
            "after": after,
        }
        body = self._connection.get("/api/v1/regressions", query)
        found = self._connection.records(Regression, body, "regressions")
        try:
            counts = [int(body[name]) for name in ("counted", "counted_at_most", "waiting_scores")]
            return RegressionPage(found, body["next"], tuple(body["metrics"]), *counts)
        except (KeyError, TypeError, ValueError) as exc:
            raise self._connection.alien(exc) from exc

    def pairs_table(
        self,
        rollout: str,
        *,
        younger_than: int = 0,
        arrived_up_to: int | None = None,
        scored_up_to: int | None = None,
    ) -> pa.Table:
        """Return the pairs of a rollout as Arrow columns, one row a pair, numbers only.

        Those whose generations all arrived after `younger_than`. The schema's metadata say up to
        which generation and score it goes (`arrived_after`, `arrived_up_to`, `scored_up_to`); with
        the same numbers the answer is the same.
        """
        query: Query = {
            "rollout": rollout,
            "younger_than": younger_than,
            "arrived_up_to": arrived_up_to,
            "scored_up_to": scored_up_to,
        }
        with self._connection.arrow("/api/v1/pairs", query) as reader:
            return reader.read_all()

    def pair_changes(self, rollout: str, *, arrived_after: int, scored_after: int) -> PairChanges:
        """Return the pairs of which anything arrived, or was first scored, since a place.

        Columns as of `pairs_table`, and for each side `arrival` and `scored_{metric}`: the numbers
        of its first generation and first score, null if there is none. A window holds at most
        20,000 of either; ask on from where it ends.
        """
        query: Query = {
            "rollout": rollout,
            "arrived_after": arrived_after,
            "scored_after": scored_after,
        }
        with self._connection.arrow("/api/v1/pairs", query) as reader:
            end, table = reader.schema.metadata or {}, reader.read_all()
        try:
            arrived, scored = (int(end[name]) for name in (b"arrived_up_to", b"scored_up_to"))
            return PairChanges(table, arrived, scored, end[b"more"] == b"1")
        except (KeyError, ValueError) as exc:
            raise self._connection.alien(exc) from exc
