"""Pull what lacks scores, score it, and post the scores."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from collector.client import Client
from collector.contract import Generation, Score
from evals.evaluation.scoring import Choice, Signature, Task, signature
from evals.evaluation.workers import Scored, scored
from evals.evaluators import Need
from evals.rollouts import require

BATCH = 200
MAX_UNPOSTED_S = 5.0
"""However slow a judge is, no score waits longer than this for others to be posted with."""

Progress = Callable[[int, int], None]
"""Called with (generations done, generations in all)."""
_Known = set[tuple[str, str, str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCounts:
    """What one evaluation did; scores are counted, not generations, unless said."""

    generations: int
    """Generations looked at."""
    failed: int
    """Generations that ended in an error: the gate counts them, no evaluator does."""
    scored: int
    unscored: int
    """Answers that a metric applies to and that could not be judged."""
    kept: int
    """Scores that were already there."""
    not_applicable: int
    without_text: int
    """Generations that did not fail and of which the collector holds no text."""


@dataclass(slots=True)
class _Tally:
    generations: int = 0
    failed: int = 0
    scored: int = 0
    unscored: int = 0
    kept: int = 0
    not_applicable: int = 0
    without_text: int = 0

    def counts(self) -> EvaluationCounts:
        """Freeze the tally."""
        return EvaluationCounts(**asdict(self))


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
        self.tally = _Tally()
        self._client, self._rollout, self._choice = client, rollout, choice
        self._progress, self._total = progress, total
        self._batch: list[Score] = []
        self._posted_s = time.monotonic()
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
                self._take(done)
        finally:
            self._post()

    def _tasks(self) -> Iterator[Task]:
        for generation in self._client.generations(self._rollout, content=True):
            self._count(generation)
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

    def _count(self, generation: Generation) -> None:
        self.tally.generations += 1
        if generation.error_type is not None:
            self.tally.failed += 1
        else:
            self.tally.without_text += generation.content is None

    def _lacking(self, generation: Generation) -> frozenset[Signature]:
        return self._without_known(generation, self._of_one)

    def _without_known(
        self, generation: Generation, wanted: frozenset[Signature]
    ) -> frozenset[Signature]:
        ids = (generation.trace_id, generation.span_id)
        lacking = frozenset(s for s in wanted if (*ids, *s) not in self._known)
        self.tally.kept += len(wanted) - len(lacking)
        return lacking

    def _take(self, done: Scored) -> None:
        for score in done.scores:
            if score is None:
                self.tally.not_applicable += 1
                continue
            self.tally.scored += score.value is not None
            self.tally.unscored += score.value is None
            self._batch.append(score)
        late = time.monotonic() - self._posted_s > MAX_UNPOSTED_S
        if len(self._batch) >= BATCH or (self._batch and late):
            self._post()

    def _post(self) -> None:
        batch, self._batch = self._batch, []
        self._posted_s = time.monotonic()
        if batch:
            self._client.post_scores(batch)


def follow_rollout(
    client: Client,
    rollout: str,
    report: Callable[[EvaluationCounts], None],
    *,
    choice: Choice | None = None,
    workers: int = 1,
    every_s: float = 2.0,
) -> None:
    """Evaluate, wait, and evaluate again what has arrived, until interrupted.

    `report` gets the counts of each pass that posted something. A pass begins only where the
    collector holds more generations than at the last.
    """
    seen = -1
    while True:
        total = require(client, rollout)
        if total != seen:
            counts = evaluate_rollout(client, rollout, choice=choice, workers=workers)
            seen = total
            if counts.scored or counts.unscored:
                report(counts)
        time.sleep(every_s)
