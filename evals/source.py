"""What the collector holds, as evidence: scoring what is unscored, and judging a rollout."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter

import pyarrow as pa

from collector.client import Client
from collector.contract import Generation, Score, Verdict
from evals.errors import SourceError
from evals.evaluators import Evaluator, shipped
from evals.evidence import Evidence
from evals.gate import decide
from evals.pairs_table import from_table
from evals.policy import Policy

BATCH = 200

Progress = Callable[[int, int], None]
"""Called with (generations done, generations in all)."""


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
    client: Client, rollout: str, progress: Progress | None = None
) -> EvaluationCounts:
    """Score what has no score yet by the shipped evaluators, and post the scores in batches.

    Idempotent: a score already stored under the evaluator's name and version is kept. Raises
    `SourceError` for a rollout that the collector does not know.
    """
    total = require(client, rollout)
    known = {
        (s.trace_id, s.span_id, s.metric, s.evaluator, s.version) for s in client.scores(rollout)
    }
    evaluators = shipped()
    tally, batch = _Tally(), list[Score]()
    try:
        for generation in client.generations(rollout, content=True):
            batch += _new_scores(generation, evaluators, known, tally)
            if len(batch) >= BATCH:
                client.post_scores(batch)
                batch = []
            if progress is not None:
                progress(tally.generations, max(total, tally.generations))
        if batch:
            client.post_scores(batch)
    finally:
        for evaluator in evaluators:
            evaluator.close()
    return tally.counts()


def load_evidence(client: Client, rollout: str) -> Evidence:
    """Return the rollout's pairs; raises `SourceError` where the collector does not know it."""
    return from_table(load_pairs(client, rollout))


def load_pairs(client: Client, rollout: str) -> pa.Table:
    """Return the rollout's table of pairs; raises as `load_evidence`."""
    require(client, rollout)
    return client.pairs_table(rollout)


def judge(client: Client, rollout: str, policy: Policy, *, control: str | None = None) -> Verdict:
    """Decide on a rollout from what the collector holds; posts nothing."""
    equal = None if control is None else load_evidence(client, control)
    return decide(load_evidence(client, rollout), policy, rollout=rollout, control=equal)


def require(client: Client, rollout: str) -> int:
    """Return how many generations a rollout has; raises `SourceError` for an unknown one."""
    overviews = client.rollouts()
    for overview in overviews:
        if overview.rollout == rollout:
            return overview.baseline_generations + overview.candidate_generations
    names = ", ".join(sorted(overview.rollout for overview in overviews)) or "none at all"
    raise SourceError(f"rollout {rollout}: the collector holds no such rollout; it holds {names}")


def _new_scores(
    generation: Generation,
    evaluators: Sequence[Evaluator],
    known: set[tuple[str, str, str, str, str]],
    tally: _Tally,
) -> Iterable[Score]:
    """Return the scores that a generation still lacks; none for one that failed."""
    tally.generations += 1
    if generation.error_type is not None:
        tally.failed += 1
        return []
    tally.without_text += generation.content is None
    scores = []
    for e in evaluators:
        if (generation.trace_id, generation.span_id, e.metric, e.name, e.version) in known:
            tally.kept += 1
            continue
        started = perf_counter()
        score = e.score(generation)
        if score is None:
            tally.not_applicable += 1
            continue
        tally.scored += score.value is not None
        tally.unscored += score.value is None
        scores.append(replace(score, latency_s=perf_counter() - started))
    return scores
