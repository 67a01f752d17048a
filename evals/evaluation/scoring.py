"""Apply evaluators to generations; equal texts are scored once."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from time import perf_counter
from typing import NamedTuple, TypeGuard

from collector.contract import Generation, Pair, Score
from evals.evaluators import AnyEvaluator, Need, make, shipped
from evals.evaluators.base import ComparingEvaluator

_MAX_CACHED = 20_000


@dataclass(frozen=True, slots=True)
class Choice:
    """The evaluators to use, by name; each process makes its own instances."""

    names: tuple[str, ...] | None = None
    """`None`: the shipped evaluators."""

    def make(self) -> tuple[AnyEvaluator, ...]:
        """Return new evaluators, which the caller closes."""
        return shipped() if self.names is None else make(self.names)


class ScoreKey(NamedTuple):
    """The key of a score, besides its generation's ids."""

    metric: str
    name: str
    version: str


class Task(NamedTuple):
    """An answer and the scores that it lacks."""

    generation: Generation
    baseline: Generation | None
    """The other answer of its pair; None if the answer is scored alone."""
    lacking: frozenset[ScoreKey]


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of all scores that a choice of evaluators gives."""

    alone: frozenset[ScoreKey]
    """Scores of single answers."""
    of_pairs: frozenset[ScoreKey]
    """Scores of a candidate's answer against the baseline's."""
    beside: Mapping[ScoreKey, ScoreKey]
    """For comparing evaluators: signature alone → signature beside the pair's other answer."""

    @classmethod
    def of(cls, choice: Choice) -> "Signatures":
        """Return the signatures of the chosen evaluators."""
        evaluators = choice.make()
        for evaluator in evaluators:
            evaluator.close()
        pairs = frozenset(signature(e) for e in evaluators if Need.BASELINE in e.needs)
        beside = {signature(e): signature_beside(e) for e in evaluators if is_comparing(e)}
        return cls(frozenset(signature(e) for e in evaluators) - pairs, pairs, beside)

    @property
    def of_both(self) -> frozenset[ScoreKey]:
        """Scores that both answers of a pair get, each beside the other."""
        return frozenset(self.beside.values())

    @property
    def in_pairs(self) -> frozenset[ScoreKey]:
        """Scores that only answers in pairs get."""
        return self.of_pairs | self.of_both

    @property
    def wants_pairs(self) -> bool:
        """Whether any score needs a pair."""
        return bool(self.in_pairs)

    def lacking(self, known: Container[ScoreKey]) -> frozenset[ScoreKey]:
        """Return the scores that an answer lacks alone; a score beside another answer suffices."""
        return frozenset(
            s for s in self.alone if s not in known and self.beside.get(s) not in known
        )

    def lacking_in_pair(self, known: Container[ScoreKey]) -> frozenset[ScoreKey]:
        """Return the pair scores that a pair lacks; `known` are those of the candidate."""
        return frozenset(s for s in self.in_pairs if s not in known)


def signature(evaluator: AnyEvaluator) -> ScoreKey:
    """Return the signature of the evaluator's scores."""
    return ScoreKey(evaluator.metric, evaluator.name, evaluator.version)


def signatures_by_answer(scores: Iterable[Score]) -> defaultdict[tuple[str, str], set[ScoreKey]]:
    """Return the signatures of each answer's scores, by (trace id, span id)."""
    known = defaultdict[tuple[str, str], set[ScoreKey]](set)
    for score in scores:
        name = ScoreKey(score.metric, score.evaluator, score.version)
        known[score.trace_id, score.span_id].add(name)
    return known


def both_answered(pairs: Iterable[Pair]) -> list[tuple[Generation, Generation]]:
    """Return (candidate, baseline) of the pairs in which both requests succeeded."""
    return [
        (pair.candidate, pair.baseline)
        for pair in pairs
        if pair.candidate is not None
        and pair.baseline is not None
        and pair.candidate.error_type is None
        and pair.baseline.error_type is None
    ]


def signature_beside(evaluator: ComparingEvaluator) -> ScoreKey:
    """Return the signature of the evaluator's scores by `score_beside`."""
    return signature(evaluator)._replace(version=evaluator.version_beside)


def is_comparing(evaluator: AnyEvaluator) -> TypeGuard[ComparingEvaluator]:
    """Return whether an evaluator has `score_beside`."""
    return hasattr(evaluator, "score_beside")


class Scorer:
    """Applies its evaluators to generations; not safe to use from several threads."""

    def __init__(self, evaluators: Sequence[AnyEvaluator]) -> None:
        """Take ownership of the evaluators; `close` closes them."""
        self._evaluators = {signature(e): e for e in evaluators}
        self._beside = {signature_beside(e): e for e in evaluators if is_comparing(e)}
        self._cache: dict[tuple[ScoreKey, bytes], Score | None] = {}

    def close(self) -> None:
        """Close the evaluators."""
        for evaluator in self._evaluators.values():
            evaluator.close()

    def score(self, task: Task) -> list[Score | None]:
        """Return one result for each lacking score; `None` if the metric does not apply.

        A comparing evaluator scores both answers of the pair, which gives two results.
        """
        found, beside = list[Score | None](), sorted(task.lacking & self._beside.keys())
        if rest := sorted(task.lacking - self._beside.keys()):
            digest = _digest(task.generation, task.baseline)
            found += [self._cached_score(task, wanted, digest) for wanted in rest]
        if beside and task.baseline is not None:
            for one in (task, task._replace(generation=task.baseline, baseline=task.generation)):
                digest = _digest(one.generation, one.baseline)
                found += [self._cached_score(one, wanted, digest) for wanted in beside]
        return found

    def _cached_score(self, task: Task, wanted: ScoreKey, digest: bytes) -> Score | None:
        key = (wanted, digest)
        if key not in self._cache:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = self._score_one(wanted, task)
        found, own = self._cache[key], task.generation
        if found is None or (found.trace_id, found.span_id) == (own.trace_id, own.span_id):
            return found
        # Scored before for an equal text: the score holds, and cost nothing this time.
        return replace(
            found, trace_id=own.trace_id, span_id=own.span_id, latency_s=None, cost_usd=None
        )

    def _score_one(self, wanted: ScoreKey, task: Task) -> Score | None:
        started = perf_counter()
        comparing = self._beside.get(wanted)
        if comparing is None:
            score = _scored(self._evaluators[wanted], task)
        elif task.baseline is not None:
            score = comparing.score_beside(task.generation, task.baseline)
        else:
            return None
        if score is None or score.latency_s is not None:
            return score
        return replace(score, latency_s=perf_counter() - started)


def _scored(evaluator: AnyEvaluator, task: Task) -> Score | None:
    if not hasattr(evaluator, "score_pair"):
        return evaluator.score(task.generation)
    other = task.baseline
    return None if other is None else evaluator.score_pair(task.generation, other)


def _digest(generation: Generation, baseline: Generation | None) -> bytes:
    """Return a digest of all fields that an evaluator may read, except ids and times."""
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
