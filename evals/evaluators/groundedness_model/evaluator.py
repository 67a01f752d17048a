"""Groundedness by the words and by a small transformer together; needs an extra."""

from functools import lru_cache

from evals.evaluators.groundedness.evaluator import Groundedness
from evals.evaluators.groundedness.features import matrix, read
from evals.evaluators.groundedness.judgement import (
    MAX_ANSWER_CHARACTERS,
    Judgement,
    indexed,
    judgement,
)
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness_model.network import Context, Network

_CONTEXTS = 8


class GroundednessModel(Groundedness):
    """`Groundedness`, with a network's reading of each sentence beside the words' measurements.

    Says the same things in the same form. Raises `EvaluatorError` where the extra is missing.
    """

    name = "groundedness-model"

    def __init__(self, network: Network | None = None) -> None:
        self._network = network or Network(shipped().rarity)
        self.version = f"1+{self._network.hash}"
        self._context = lru_cache(maxsize=_CONTEXTS)(self._indexed)

    @property
    def threshold(self) -> float:
        """The probability from which on an answer counts as unsupported."""
        return self._network.blend.threshold

    def judge(self, answer: str, texts: tuple[str, ...]) -> Judgement | None:
        """Judge an answer, `None` where it has no sentence; the worst sentence decides."""
        context, model, blend = self._context(texts), shipped(), self._network.blend
        text = answer[:MAX_ANSWER_CHARACTERS]
        readings = read(text, sentences_of(text), context.passages, model.rarity)
        if not readings or not context.chunks:
            return None
        rows = matrix(readings)
        read_by_network = self._network.log_odds(text, readings, context)
        odds = blend.probability(model.raw(rows), read_by_network, model.excess(rows))
        return judgement(text, readings, context.passages, odds, blend.value)

    def _indexed(self, texts: tuple[str, ...]) -> Context:
        passages: Passages = indexed(texts)
        return self._network.context(passages)
