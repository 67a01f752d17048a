"""Groundedness by the words and by a small transformer together; needs an extra."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.checks import excess
from evals.evaluators.groundedness.evaluator import Groundedness
from evals.evaluators.groundedness.features import Reading, matrix, read
from evals.evaluators.groundedness.judgement import (
    MAX_ANSWER_CHARACTERS,
    Judged,
    SentenceJudge,
    indexed,
)
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness_model.blend import of_forests
from evals.evaluators.groundedness_model.network import Context, Network

_CONTEXTS = 8


class GroundednessModel(Groundedness):
    """`Groundedness`, with a network's reading of each sentence beside the words' measurements.

    Says the same things in the same form. Raises `EvaluatorError` where the extra is missing.
    """

    name = "groundedness-model"

    def __init__(self, network: Network | None = None) -> None:
        super().__init__()
        self._network = network or Network(shipped().rarity)
        self.version = f"1+{self._network.hash}"
        self._context = lru_cache(maxsize=_CONTEXTS)(self._indexed)

    @property
    def threshold(self) -> float:
        """The probability from which on an answer counts as unsupported."""
        return self._network.blend.threshold

    def judging(self, texts: tuple[str, ...], question: str = "") -> SentenceJudge:
        """Return what judges the sentences of answers to a question on these passages."""
        return _BothJudge(self._network, self._context(texts), question)

    def _indexed(self, texts: tuple[str, ...]) -> Context:
        passages: Passages = indexed(texts)
        return self._network.context(passages)


@dataclass(frozen=True, slots=True)
class _BothJudge:
    """Judges by the forests and the network; beside a counterpart by the forests alone."""

    network: Network
    context: Context
    question: str

    @property
    def passages(self) -> Passages:
        return self.context.passages

    def sentences(self, answer: str, known: Sequence[Reading] = ()) -> Judged | None:
        context, model, blend = self.context, shipped(), self.network.blend
        text = answer[:MAX_ANSWER_CHARACTERS]
        sentences, rarity = sentences_of(text), model.rarity
        readings = read(text, sentences, context.passages, rarity, known, self.question)
        if not readings or not context.chunks:
            return None
        rows = matrix(readings)
        read_by_network = self.network.log_odds(text, readings, context)
        found = blend.probability(of_forests(model, rows), read_by_network, excess(readings))
        return Judged(text, readings, found, float(found.max()))

    def contrasted(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return shipped().contrasted(rows, self.network.blend.threshold)

    def value(self, probability: float) -> float:
        return self.network.blend.value(probability)
