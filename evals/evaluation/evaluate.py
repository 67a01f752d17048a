"""Fetch the generations of a rollout, score those that lack scores, and post the scores."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

from collector.client import Client
from collector.contract import Generation
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
from evals.evaluation.workers import scored
from evals.rollouts import require

Progress = Callable[[int, int], None]
"""Called with (generations done, total generations)."""


def evaluate_rollout(
    client: Client,
    rollout: str,
    progress: Progress | None = None,
    *,
    choice: Choice | None = None,
    workers: int = 1,
) -> EvaluationCounts:
    """Score the answers that lack scores, and post the scores in batches.

    Idempotent: a score already stored under the evaluator's name and version is kept, so an
    interrupted evaluation continues where it stopped. Raises `SourceError` if the collector does
    not know the rollout.
    """
    total = require(client, rollout)
    evaluation = _Evaluation(client, rollout, choice or Choice(), progress, total)
    evaluation.run(workers)
    return evaluation.tally.counts()


class _Evaluation:
    """One pass over a rollout."""

    def __init__(
        self,
        client: Client,
        rollout: str,
        choice: Choice,
        progress: Progress | None,
        total: int,
    ) -> None:
        self.tally = Tally()
        self._client, self._rollout, self._choice = client, rollout, choice
        self._progress, self._total = progress, total
        self._posting = Posting(client.post_scores)
        self._wanted = Signatures.of(choice)
        self._known = signatures_by_answer(client.scores(rollout))

    def run(self, workers: int) -> None:
        """Score pairs, then single answers; finished scores are posted even after an exception."""
        try:
            for done in scored(self._choice, self._tasks(), workers=workers):
                self._posting.add(self.tally.take(done.scores))
        finally:
            self._posting.flush()

    def _tasks(self) -> Iterator[Task]:
        # Pairs first: an answer that is scored beside another one is not scored alone as well.
        if self._wanted.wants_pairs:
            yield from self._pair_tasks()
        for generation in self._client.generations(self._rollout, content=True):
            if generation.sentinel is not None:  # compared with its own answers alone
                continue
            self.tally.count(generation)
            if generation.error_type is None:
                known = self._stored(generation)
                self.tally.kept += len(self._wanted.alone & known)
                if lacking := self._wanted.lacking(known):
                    yield Task(generation, None, lacking)
            if self._progress is not None:
                self._progress(self.tally.generations, max(self._total, self.tally.generations))

    def _pair_tasks(self) -> Iterator[Task]:
        after: str | None = None
        while True:
            page = self._client.pairs(self._rollout, content=True, after=after)
            for candidate, baseline in both_answered(page.pairs):
                yield from self._pair_task(candidate, baseline)
            after = page.next
            if after is None:
                return

    def _pair_task(self, candidate: Generation, baseline: Generation) -> Iterator[Task]:
        lacking = self._wanted.lacking_in_pair(self._stored(candidate))
        lacking |= self._wanted.of_both - self._stored(baseline)
        self.tally.kept += len(self._wanted.in_pairs - lacking)
        self.tally.kept += len(self._wanted.of_both - lacking)
        if lacking:
            for one in (candidate, baseline):
                self._known[one.trace_id, one.span_id].update(self._wanted.of_both)
            yield Task(candidate, baseline, lacking)

    def _stored(self, generation: Generation) -> AbstractSet[ScoreKey]:
        return self._known.get((generation.trace_id, generation.span_id), frozenset())
