"""Pull what lacks scores, score it, and post the scores."""

from collections.abc import Callable, Iterator

from collector.client import Client
from collector.contract import Generation
from evals.evaluation.posting import Posting
from evals.evaluation.scoring import Choice, Signature, Task, signature
from evals.evaluation.tally import EvaluationCounts, Tally
from evals.evaluation.workers import scored
from evals.evaluators import Need
from evals.rollouts import require

Progress = Callable[[int, int], None]
"""Called with (generations done, generations in all)."""
_Known = set[tuple[str, str, str, str, str]]


def evaluate_rollout(
    client: Client,
    rollout: str,
    progress: Progress | None = None,
    *,
    choice: Choice | None = None,
    workers: int = 1,
) -> EvaluationCounts:
    """Score what has no score yet, and post the scores in batches.

    Idempotent: a score already stored under the evaluator's name and version is kept, so that an
    evaluation that was broken off goes on where it was. Raises `SourceError` for a rollout that
    the collector does not know.
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
        evaluators = choice.make()
        self._of_one = frozenset(signature(e) for e in evaluators if Need.BASELINE not in e.needs)
        self._of_pairs = frozenset(signature(e) for e in evaluators) - self._of_one
        for evaluator in evaluators:
            evaluator.close()
        self._known: _Known = {
            (s.trace_id, s.span_id, s.metric, s.evaluator, s.version)
            for s in client.scores(rollout)
        }

    def run(self, workers: int) -> None:
        """Score answers, then pairs; what is scored is posted, whatever ends the pass."""
        try:
            for done in scored(self._choice, self._tasks(), workers=workers):
                self._posting.add(self.tally.take(done.scores))
        finally:
            self._posting.flush()

    def _tasks(self) -> Iterator[Task]:
        for generation in self._client.generations(self._rollout, content=True):
            self.tally.count(generation)
            if generation.error_type is None and (lacking := self._lacking(generation)):
                yield Task(generation, None, lacking)
            if self._progress is not None:
                self._progress(self.tally.generations, max(self._total, self.tally.generations))
        if self._of_pairs:
            yield from self._pair_tasks()

    def _pair_tasks(self) -> Iterator[Task]:
        after: str | None = None
        while True:
            page = self._client.pairs(self._rollout, content=True, after=after)
            for pair in page.pairs:
                candidate, baseline = pair.candidate, pair.baseline
                both = candidate is not None and baseline is not None
                if not both or candidate.error_type or baseline.error_type:  # type: ignore[union-attr]
                    continue
                lacking = self._without_known(candidate, self._of_pairs)  # type: ignore[arg-type]
                if lacking:
                    yield Task(candidate, baseline, lacking)  # type: ignore[arg-type]
            after = page.next
            if after is None:
                return

    def _lacking(self, generation: Generation) -> frozenset[Signature]:
        return self._without_known(generation, self._of_one)

    def _without_known(
        self, generation: Generation, wanted: frozenset[Signature]
    ) -> frozenset[Signature]:
        ids = (generation.trace_id, generation.span_id)
        lacking = frozenset(s for s in wanted if (*ids, *s) not in self._known)
        self.tally.kept += len(wanted) - len(lacking)
        return lacking
