"""Score what arrives, together with every other worker that does.

A worker leases generations from the collector, scores them, posts the scores, and only then says
that it is done: one that is killed leaves nothing undone, for its lease runs out and another takes
it over. Scores are stored once, so that work done twice changes nothing.
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
    Signature,
    Signatures,
    Task,
    answered,
    known_by_answer,
)
from evals.evaluation.tally import EvaluationCounts, Tally
from evals.evaluation.workers import Scoring, scoring
from evals.rollouts import require

LEASED = 64
"""Generations in a lease, for each process that scores: few seconds' work of most evaluators."""
REPORTED_EVERY_S = 10.0
_AGAIN_S = 1.0
_COME_AGAIN = frozenset(
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
    """How a worker works."""

    workers: int = 1
    """Processes that score."""
    ttl_s: float = 60.0
    """After so long without a sign of this worker another takes over what it has leased."""
    every_s: float = 2.0
    """How often it asks where nothing is left."""


def follow_rollout(
    client: Client,
    rollout: str,
    report: Callable[[EvaluationCounts], None],
    *,
    choice: Choice | None = None,
    terms: Terms | None = None,
) -> None:
    """Score what nobody has scored, as it arrives, until interrupted.

    `report` gets the counts since the last report, now and then while something is posted. A
    collector that does not answer is asked again. Raises `SourceError` for a rollout that it does
    not know at the beginning.
    """
    require(client, rollout)
    terms = terms or Terms()
    with scoring(choice or Choice(), workers=terms.workers) as score:
        _Following(client, rollout, choice or Choice(), terms).run(score, report)


class _Following:
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
        """Lease and score, until interrupted."""
        try:
            while True:
                lease = _patiently(lambda: self._client.lease(self._wanted))
                if lease is not None:
                    self._work_off(lease, score)
                if lease is None or time.monotonic() > self._reported_s + REPORTED_EVERY_S:
                    self._report(report)
                if lease is None:
                    time.sleep(self._terms.every_s)
        finally:
            self._report(report)

    def _work_off(self, lease: Lease, score: Scoring) -> None:
        posting = Posting(lambda scores: _patiently(lambda: self._client.post_scores(scores)))
        with _renewed(self._client, lease.id, self._terms.ttl_s):
            try:
                for done in score(self._tasks(lease)):
                    posting.add(self._tally.take(done.scores))
            finally:
                posting.flush()
            self._restore_pairs(lease)
            # Where it was lost meanwhile another scores it again, and comes to the same.
            _patiently(lambda: self._client.finish_lease(lease.id))

    def _tasks(self, lease: Lease) -> Iterator[Task]:
        known = known_by_answer(lease.scores)
        for candidate, baseline in answered(lease.pairs):
            has = known[candidate.trace_id, candidate.span_id]
            left = self._names.lacking_in_pair(has)
            self._tally.kept += len(self._names.in_pairs - left)
            if left:
                yield Task(candidate, baseline, left)
            for one in (candidate, baseline):
                known[one.trace_id, one.span_id].update(self._names.of_both)
        for one in lease.generations:
            self._tally.count(one)
            if one.error_type is None:
                has = known[one.trace_id, one.span_id]
                self._tally.kept += len(self._names.alone & has)
                if left := self._names.lacking(has):
                    yield Task(one, None, left)

    def _restore_pairs(self, lease: Lease) -> None:
        """Post again the scores beside another answer that ours of an answer alone came after.

        The other side may have arrived, and another worker scored both, while we scored ours; of a
        metric's scores the last that was posted counts.
        """
        whole = answered(lease.pairs)
        first, self._pairs_seen = self._pairs_seen is None, bool(self._pairs_seen or whole)
        if not self._names.beside or not (first or self._pairs_seen):
            return  # nothing has a pair here: a split of traffic, for example
        paired = {(one.trace_id, one.span_id) for pair in whole for one in pair}
        again = list[Score]()
        for one in lease.generations:
            if one.error_type is None and (one.trace_id, one.span_id) not in paired:
                again += self._beside(one)
        if again:
            _patiently(lambda: self._client.post_scores(again))

    def _beside(self, one: Generation) -> list[Score]:
        """Return the stored scores of an answer beside its pair's other one."""
        prompt, repeat = one.prompt_id, one.repeat
        if prompt is None or repeat is None or one.arm is None:
            return []
        pair = _patiently(lambda: self._client.pair(self._wanted.rollout, prompt, repeat))
        return (
            [
                score
                for score in (*pair.baseline_scores, *pair.candidate_scores)
                if (score.trace_id, score.span_id) == (one.trace_id, one.span_id)
                and Signature(score.metric, score.evaluator, score.version) in self._names.of_both
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
    """Renew a lease, on a thread, for as long as it is worked on; give it back where that fails."""
    ended = threading.Event()

    def renew() -> None:
        # Three times, so that one renewal that does not get through loses nothing.
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


def _patiently(ask: Callable[[], T]) -> T:
    """Ask until a collector answers: one that restarts, or is busy, is back in a while."""
    said = False
    while True:
        try:
            return ask()
        except ClientError as exc:
            if exc.status not in _COME_AGAIN:
                raise
            if not said:
                _log.warning("the collector does not answer and is asked again: %s", exc)
            said = True
            time.sleep(_AGAIN_S)
