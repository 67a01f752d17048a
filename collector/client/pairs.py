"""Client requests for pairs, their regressions and their changes."""

from typing import NamedTuple

from collector.client.connection import ApiResource, Query
from collector.columns import ArrowError, Table
from collector.contract import Pair, Regression, Unpaired


class PairPage(NamedTuple):
    """A page of pairs, ordered by prompt id and repeat."""

    pairs: tuple[Pair, ...]
    next: str | None
    """Pass it as `after` for the next page; None on the last."""


class RegressionPage(NamedTuple):
    """A page of pairs whose candidate scored lower, the largest loss first."""

    regressions: tuple[Regression, ...]
    next: str | None
    """Pass it as `after` for the next page; None on the last."""
    metrics: tuple[str, ...]
    """All metrics in which a pair of the rollout regressed."""
    counted: int
    """The number of matching regressions, at most `counted_at_most`."""
    counted_at_most: int
    waiting_scores: int
    """Score posts of any rollout that are not processed yet."""


class PairChanges(NamedTuple):
    """The changed pairs of a rollout, and the position for the next request."""

    table: Table
    arrived_up_to: int
    scored_up_to: int
    more: bool
    """Whether later changes are stored already."""


class PairRequests(ApiResource):
    """Pairs, their regressions and their changes."""

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
        return next(iter(self._connection.list(Pair, "pairs", "/api/v1/pairs", query)), None)

    def unpaired(self, rollout: str | None = None) -> tuple[Unpaired, ...]:
        """Return the unpaired ones among the newest generations, grouped by reason and sender.

        Of all rollouts or one; the largest group first.
        """
        query = {"rollout": rollout}
        return self._connection.list(Unpaired, "unpaired", "/api/v1/unpaired", query)

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

        The largest loss comes first: in `metric`, or in each pair's metric with its largest loss.
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
            raise self._connection.unexpected_answer(exc) from exc

    def pairs_table(
        self,
        rollout: str,
        *,
        younger_than: int = 0,
        arrived_up_to: int | None = None,
        scored_up_to: int | None = None,
    ) -> Table:
        """Return the pairs of a rollout as a table, one row per pair, without content.

        Only pairs whose generations all arrived after `younger_than`. The metadata contain the
        bounds (`arrived_after`, `arrived_up_to`, `scored_up_to`); equal bounds give equal
        tables.
        """
        query: Query = {
            "rollout": rollout,
            "younger_than": younger_than,
            "arrived_up_to": arrived_up_to,
            "scored_up_to": scored_up_to,
        }
        return self._table(query)

    def pair_changes(self, rollout: str, *, arrived_after: int, scored_after: int) -> PairChanges:
        """Return the pairs with generations that arrived, or were first scored, after a position.

        The columns of `pairs_table`, plus for each side `arrival` and `scored_{metric}`: the
        numbers of its first generation and first score, null if it has none. A window contains at
        most 20,000 generations and 20,000 scores; continue from its end while `more` is true.
        """
        query: Query = {
            "rollout": rollout,
            "arrived_after": arrived_after,
            "scored_after": scored_after,
        }
        table = self._table(query)
        end = table.metadata
        try:
            arrived, scored = (int(end[name]) for name in (b"arrived_up_to", b"scored_up_to"))
            return PairChanges(table, arrived, scored, end[b"more"] == b"1")
        except (KeyError, ValueError) as exc:
            raise self._connection.unexpected_answer(exc) from exc

    def _table(self, query: Query) -> Table:
        with self._connection.arrow("/api/v1/pairs", query, ArrowError) as body:
            return Table.read(body)
