"""Score generations as they arrive, shared with any number of other workers.

A worker leases generations from the collector, scores them, posts the scores, and only then
finishes the lease. If a worker is killed, its lease expires and another worker takes the
generations over. Posting a score twice changes nothing, so work done twice is harmless.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from collector.client import Client, ClientError
from collector.contract import Generation, Lease, LeasedEvaluator, LeaseRequest, Score
from evals.evaluation.posting import Posting
from evals.evaluation.scoring import (
    Choice,
    ScoreKey,
    Signatures,
    Task,
    both_answered,
    signatures_by_answer,
)
from evals.evaluation.tally import EvaluationCounts, Tally
from evals.evaluation.workers import Scoring, scoring
from evals.rollouts import require

LEASED = 64
"""Generations in a lease, per scoring process: a few seconds of work for most evaluators."""
REPORTED_EVERY_S = 10.0
_RETRY_S = 1.0
_RETRIED_STATUSES = frozenset(
    {
        None,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Settings of a worker."""

    workers: int = 1
    """Scoring processes."""
    ttl_s: float = 60.0
    """Time without a renewal after which the lease expires and another worker may take it."""
    every_s: float = 2.0
    """Pause between requests for a lease when nothing is left to score."""


def follow_rollout(
    client: Client,
    rollout: str,
    report: Callable[[EvaluationCounts], None],
    *,
    choice: Choice | None = None,
    terms: Terms | None = None,
) -> None:
    """Score answers that lack scores, as they arrive, until interrupted.

    `report` gets the counts since the last report: when nothing is left to score, otherwise every
    `REPORTED_EVERY_S` or so, and only if there are new scores. Requests to a collector that is down
    or busy are retried. Raises `SourceError` if the collector does not know the rollout at the
    start.
    """
    require(client, rollout)
    terms = terms or Terms()
    with scoring(choice or Choice(), workers=terms.workers) as score:
        _Follower(client, rollout, choice or Choice(), terms).run(score, report)


class _Follower:
    def __init__(self, client: Client, rollout: str, choice: Choice, terms: Terms) -> None:
        self._client, self._terms = client, terms
        self._names = Signatures.of(choice)
        self._pairs_seen: bool | None = None
        self._tally = Tally()
        self._reported_s = time.monotonic()
        self._wanted = LeaseRequest(
            rollout=rollout,
            worker=f"{socket.gethostname()}:{os.getpid()}",
            evaluators=tuple(
                LeasedEvaluator(metric=one.metric, evaluator=one.name, version=one.version)
                for one in sorted(self._names.alone | self._names.in_pairs)
            ),
            pairs=self._names.wants_pairs,
            generations=min(LEASED * terms.workers, 1000),
            ttl_s=terms.ttl_s,
        )

    def run(self, score: Scoring, report: Callable[[EvaluationCounts], None]) -> None:
        """Lease and score until interrupted."""
        try:
            while True:
                lease = _with_retries(lambda: self._client.lease(self._wanted))
                if lease is not None:
                    self._score_lease(lease, score)
                if lease is None or time.monotonic() > self._reported_s + REPORTED_EVERY_S:
                    self._report(report)
                if lease is None:
                    time.sleep(self._terms.every_s)
        finally:
            self._report(report)

    def _score_lease(self, lease: Lease, score: Scoring) -> None:
        posting = Posting(lambda scores: _with_retries(lambda: self._client.post_scores(scores)))
        with _renewed(self._client, lease.id, self._terms.ttl_s):
            try:
                for done in score(self._tasks(lease)):
                    posting.add(self._tally.take(done.scores))
            finally:
                posting.flush()
            self._repost_pair_scores(lease)
            # If the lease was lost meanwhile, another worker posts the same scores again.
            _with_retries(lambda: self._client.finish_lease(lease.id))

    def _tasks(self, lease: Lease) -> Iterator[Task]:
        known = signatures_by_answer(lease.scores)
        for candidate, baseline in both_answered(lease.pairs):
            has = known[candidate.trace_id, candidate.span_id]
            left = self._names.lacking_in_pair(has)
            self._tally.kept += len(self._names.in_pairs - left)
            if left:
                yield Task(candidate, baseline, left)
            for one in (candidate, baseline):
                known[one.trace_id, one.span_id].update(self._names.of_both)
        for one in lease.generations:
            if one.sentinel is not None:  # compared with its own answers alone
                continue
            self._tally.count(one)
            if one.error_type is None:
                has = known[one.trace_id, one.span_id]
                self._tally.kept += len(self._names.alone & has)
                if left := self._names.lacking(has):
                    yield Task(one, None, left)

    def _repost_pair_scores(self, lease: Lease) -> None:
        """Post pair scores again if this worker's scores of single answers came after them.

        While this worker scored an answer alone, its counterpart may have arrived and another
        worker may have scored both beside each other. The last posted score of a metric counts.
        """
        complete = both_answered(lease.pairs)
        first, self._pairs_seen = self._pairs_seen is None, bool(self._pairs_seen or complete)
        if not self._names.beside or not (first or self._pairs_seen):
            return  # this rollout has no pairs: a split of traffic, for example
        paired = {(one.trace_id, one.span_id) for pair in complete for one in pair}
        again = list[Score]()
        for one in lease.generations:
            if one.error_type is None and (one.trace_id, one.span_id) not in paired:
                again += self._pair_scores(one)
        if again:
            _with_retries(lambda: self._client.post_scores(again))

    def _pair_scores(self, one: Generation) -> list[Score]:
        """Return the stored scores of an answer beside the other answer of its pair."""
        prompt, repeat = one.prompt_id, one.repeat
        if prompt is None or repeat is None or one.arm is None:
            return []
        pair = _with_retries(lambda: self._client.pair(self._wanted.rollout, prompt, repeat))
        return (
            [
                score
                for score in (*pair.baseline_scores, *pair.candidate_scores)
                if (score.trace_id, score.span_id) == (one.trace_id, one.span_id)
                and ScoreKey(score.metric, score.evaluator, score.version) in self._names.of_both
            ]
            if pair is not None
            else []
        )

    def _report(self, report: Callable[[EvaluationCounts], None]) -> None:
        counts = self._tally.counts()
        self._reported_s = time.monotonic()
        if counts.scored or counts.unscored:
            self._tally = Tally()
            report(counts)


@contextmanager
def _renewed(client: Client, lease_id: str, ttl_s: float) -> Iterator[None]:
    """Renew a lease on a thread inside the block; release the lease if the block raises."""
    ended = threading.Event()

    def renew() -> None:
        # Three times per TTL, so that one failed renewal does not lose the lease.
        while not ended.wait(ttl_s / 3):
            with suppress(ClientError):
                if not client.renew_lease(lease_id, ttl_s=ttl_s):
                    return

    thread = threading.Thread(target=renew, name="draftgate-lease", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        _stop(ended, thread)
        with suppress(ClientError):
            client.renew_lease(lease_id, ttl_s=0)
        raise
    _stop(ended, thread)


def _stop(ended: threading.Event, thread: threading.Thread) -> None:
    ended.set()
    thread.join()


def _with_retries(request: Callable[[], T]) -> T:
    """Retry a request, without limit, while the collector is down or busy."""
    warned = False
    while True:
        try:
            return request()
        except ClientError as exc:
            if exc.status not in _RETRIED_STATUSES:
                raise
            if not warned:
                _log.warning("the collector does not answer and is asked again: %s", exc)
            warned = True
            time.sleep(_RETRY_S)
