"""Client requests for scores, feedback and evaluation leases."""

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from itertools import islice
from urllib.parse import quote

from collector.client.connection import ApiResource, Query
from collector.contract import Feedback, Lease, LeaseRequest, Score, to_document
from collector.errors import ClientError

_SCORES_A_POST = 1000


class ScoreRequests(ApiResource):
    """Scores, feedback and evaluation leases."""

    def post_scores(self, scores: Iterable[Score]) -> None:
        """Store scores; each replaces an earlier one of its span, metric, evaluator and version."""
        left = iter(scores)
        while batch := [to_document(score) for score in islice(left, _SCORES_A_POST)]:
            self._connection.post("/api/v1/scores", batch)

    def scores(self, rollout: str, *, metric: str | None = None) -> Iterator[Score]:
        """Yield the scores of a rollout's generations, page by page."""
        query = {"rollout": rollout, "metric": metric}
        return self._connection.pages(Score, "/api/v1/scores", query, "scores")

    def lease(self, wanted: LeaseRequest, *, content: bool = True) -> Lease | None:
        """Lease generations that no other worker has leased or finished; None if there are none.

        Post their scores with `post_scores`, then call `finish_lease`.
        """
        path = f"/api/v1/leases?content={str(content).lower()}"
        body = self._connection.json(self._connection.post(path, to_document(wanted)))
        try:
            found = body["lease"]
        except (KeyError, TypeError) as exc:
            raise self._connection.unexpected_answer(exc) from exc
        return None if found is None else self._connection.record(Lease, found)

    def renew_lease(self, id_: str, *, ttl_s: float) -> bool:
        """Extend a lease to `ttl_s` seconds from now, 0 releases it; return False if it is lost."""
        return self._unless_lost(
            lambda: self._connection.post(f"{_lease_path(id_)}/renewal", {"ttl_s": ttl_s})
        )

    def finish_lease(self, id_: str) -> bool:
        """Finish a lease whose generations are all scored; return False if it is lost."""
        return self._unless_lost(lambda: self._connection.send("DELETE", _lease_path(id_)))

    def post_feedback(self, feedback: Iterable[Feedback]) -> None:
        """Store feedback; each replaces the earlier one of the same span, kind and source."""
        left = iter(feedback)
        while batch := [to_document(given) for given in islice(left, _SCORES_A_POST)]:
            self._connection.post("/api/v1/feedback", batch)

    def feedback(
        self, rollout: str, *, content: bool = False, newest: int | None = None
    ) -> Iterator[Feedback]:
        """Yield the feedback on a rollout's generations, page by page; comments with `content`.

        `newest` limits it to that many of the newest generations.
        """
        query: Query = {"rollout": rollout, "content": content, "newest": newest}
        return self._connection.pages(Feedback, "/api/v1/feedback", query, "feedback")

    @staticmethod
    def _unless_lost(ask: Callable[[], object]) -> bool:
        try:
            ask()
        except ClientError as exc:
            if exc.status == HTTPStatus.CONFLICT:
                return False
            raise
        return True


def _lease_path(id_: str) -> str:
    return f"/api/v1/leases/{quote(id_, safe='')}"
