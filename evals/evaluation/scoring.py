"""Evaluators over generations, each text scored once."""

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


@dataclass(frozen=True, slots=True)
class Signatures:
    """What all scores of some evaluators are stored under."""

    alone: frozenset[Signature]
    """Of answers by themselves."""
    of_pairs: frozenset[Signature]
    """Of a candidate's answer against the baseline's."""
    beside: Mapping[Signature, Signature]
    """By that of an answer by itself, that of an answer beside the other one of its pair."""

    @classmethod
    def of(cls, choice: Choice) -> "Signatures":
        """Return those of chosen evaluators."""
        evaluators = choice.make()
        for evaluator in evaluators:
            evaluator.close()
        pairs = frozenset(signature(e) for e in evaluators if Need.BASELINE in e.needs)
        beside = {signature(e): signature_beside(e) for e in evaluators if is_comparing(e)}
        return cls(frozenset(signature(e) for e in evaluators) - pairs, pairs, beside)

    @property
    def of_both(self) -> frozenset[Signature]:
        """Those that both answers of a pair have, each beside the other."""
        return frozenset(self.beside.values())

    @property
    def in_pairs(self) -> frozenset[Signature]:
        """Those that only an answer with a pair has."""
        return self.of_pairs | self.of_both

    @property
    def wants_pairs(self) -> bool:
        """Say whether any is scored in pairs."""
        return bool(self.in_pairs)

    def lacking(self, known: Container[Signature]) -> frozenset[Signature]:
        """Return what an answer without a pair lacks; what it had beside another one stays."""
        return frozenset(
            s for s in self.alone if s not in known and self.beside.get(s) not in known
        )

    def lacking_in_pair(self, known: Container[Signature]) -> frozenset[Signature]:
        """Return what a pair lacks of what only pairs have; `known` is the candidate's."""
        return frozenset(s for s in self.in_pairs if s not in known)


def signature(evaluator: AnyEvaluator) -> Signature:
    """Return what the evaluator's scores are stored under."""
    return Signature(evaluator.metric, evaluator.name, evaluator.version)


def known_by_answer(scores: Iterable[Score]) -> defaultdict[tuple[str, str], set[Signature]]:
    """Return what each answer, by its trace's and span's id, has scores of."""
    known = defaultdict[tuple[str, str], set[Signature]](set)
    for score in scores:
        name = Signature(score.metric, score.evaluator, score.version)
        known[score.trace_id, score.span_id].add(name)
    return known


def answered(pairs: Iterable[Pair]) -> list[tuple[Generation, Generation]]:
    """Return candidate and baseline of the pairs in which both answered."""
    return [
        (pair.candidate, pair.baseline)
        for pair in pairs
        if pair.candidate is not None
        and pair.baseline is not None
        and pair.candidate.error_type is None
        and pair.baseline.error_type is None
    ]


def signature_beside(evaluator: ComparingEvaluator) -> Signature:
    """Return what the evaluator's scores beside the other answer are stored under."""
    return signature(evaluator)._replace(version=evaluator.version_beside)


def is_comparing(evaluator: AnyEvaluator) -> TypeGuard[ComparingEvaluator]:
    """Say whether an evaluator sees more of an answer beside the other one of its pair."""
    return hasattr(evaluator, "score_beside")


class Scorer:
    """Scores generations by its evaluators; not safe to use from several threads."""

    def __init__(self, evaluators: Sequence[AnyEvaluator]) -> None:
        """Take the evaluators over: `close` closes them."""
        self._evaluators = {signature(e): e for e in evaluators}
        self._beside = {signature_beside(e): e for e in evaluators if is_comparing(e)}
        self._remembered: dict[tuple[Signature, bytes], Score | None] = {}

    def close(self) -> None:
        """Close the evaluators."""
        for evaluator in self._evaluators.values():
            evaluator.close()

    def score(self, task: Task) -> list[Score | None]:
        """Return a score, or None where it does not apply, for each that is lacking.

        Where an answer is scored beside the other one of its pair, so is that one: two scores.
        """
        found, beside = list[Score | None](), sorted(task.lacking & self._beside.keys())
        if rest := sorted(task.lacking - self._beside.keys()):
            digest = _digest(task.generation, task.baseline)
            found += [self._one(task, wanted, digest) for wanted in rest]
        if beside and task.baseline is not None:
            for one in (task, task._replace(generation=task.baseline, baseline=task.generation)):
                digest = _digest(one.generation, one.baseline)
                found += [self._one(one, wanted, digest) for wanted in beside]
        return found

    def _one(self, task: Task, wanted: Signature, digest: bytes) -> Score | None:
        key = (wanted, digest)
        if key not in self._remembered:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = self._judged(wanted, task)
        found, own = self._remembered[key], task.generation
        if found is None or (found.trace_id, found.span_id) == (own.trace_id, own.span_id):
            return found
        # The same text was judged before: the judgement holds, and cost nothing this time.
        return replace(
            found, trace_id=own.trace_id, span_id=own.span_id, latency_s=None, cost_usd=None
        )

    def _judged(self, wanted: Signature, task: Task) -> Score | None:
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
