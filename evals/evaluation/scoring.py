"""Evaluators over generations, each text scored once."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from time import perf_counter
from typing import NamedTuple

from collector.contract import Generation, Score
from evals.evaluators import AnyEvaluator, make, shipped

_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Choice:
    """Which evaluators to use; another process makes its own of it."""

    names: tuple[str, ...] | None = None
    """`None`: the shipped ones."""

    def make(self) -> tuple[AnyEvaluator, ...]:
        """Return fresh evaluators, which the caller closes."""
        return shipped() if self.names is None else make(self.names)


class Signature(NamedTuple):
    """What a score is stored under, beside its generation's ids."""

    metric: str
    name: str
    version: str


class Task(NamedTuple):
    """One answer, and what it still lacks."""

    generation: Generation
    baseline: Generation | None
    """The other answer of its pair, where it is known."""
    lacking: frozenset[Signature]


def signature(evaluator: AnyEvaluator) -> Signature:
    """Return what the evaluator's scores are stored under."""
    return Signature(evaluator.metric, evaluator.name, evaluator.version)


class Scorer:
    """Scores generations by its evaluators; not safe to use from several threads."""

    def __init__(self, evaluators: Sequence[AnyEvaluator]) -> None:
        """Take the evaluators over: `close` closes them."""
        self._evaluators = {signature(e): e for e in evaluators}
        self._remembered: dict[tuple[Signature, bytes], Score | None] = {}

    def close(self) -> None:
        """Close the evaluators."""
        for evaluator in self._evaluators.values():
            evaluator.close()

    def score(self, task: Task) -> list[Score | None]:
        """Return a score, or None where it does not apply, for each that is lacking."""
        digest = _digest(task.generation, task.baseline)
        return [self._one(task, wanted, digest) for wanted in sorted(task.lacking)]

    def _one(self, task: Task, wanted: Signature, digest: bytes) -> Score | None:
        key = (wanted, digest)
        if key not in self._remembered:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = self._judged(self._evaluators[wanted], task)
        found, own = self._remembered[key], task.generation
        if found is None or (found.trace_id, found.span_id) == (own.trace_id, own.span_id):
            return found
        # The same text was judged before: the judgement holds, and cost nothing this time.
        return replace(
            found, trace_id=own.trace_id, span_id=own.span_id, latency_s=None, cost_usd=None
        )

    def _judged(self, evaluator: AnyEvaluator, task: Task) -> Score | None:
        started = perf_counter()
        if not hasattr(evaluator, "score_pair"):
            score = evaluator.score(task.generation)
        elif task.baseline is not None:
            score = evaluator.score_pair(task.generation, task.baseline)
        else:
            return None
        if score is None or score.latency_s is not None:
            return score
        return replace(score, latency_s=perf_counter() - started)


def _digest(generation: Generation, baseline: Generation | None) -> bytes:
    """Return a digest of all that an evaluator may read but who, when and how fast."""
    parts = [
        (
            astuple(one.content) if one.content is not None else None,
            one.finish_reasons, one.stop_sequences, one.temperature, one.max_tokens,
            one.output_tokens,
        )
        for one in (generation, baseline)
        if one is not None
    ]  # fmt: skip
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
