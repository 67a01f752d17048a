"""Groundedness by the forests and a small transformer together; needs an extra."""

from collections.abc import Sequence
from functools import lru_cache, partial

from evals.evaluators.groundedness.evaluator import Groundedness
from evals.evaluators.groundedness.features import SentenceReading, matrix
from evals.evaluators.groundedness.judgement import SentenceJudge, indexed
from evals.evaluators.groundedness.model import Floats, shipped
from evals.evaluators.groundedness_model.network import Context, Network

_CONTEXTS = 8


class GroundednessModel(Groundedness):
    """`Groundedness` with a network that reads each sentence, besides the forests.

    Scores have the same form. Raises `EvaluatorError` if the extra is not installed.
    """

    name = "groundedness-model"

    def __init__(self, network: Network | None = None) -> None:
        super().__init__()
        self._network = network or Network(shipped().rarity)
        self.version = f"19+{self._network.hash}"
        self._context = lru_cache(maxsize=_CONTEXTS)(self._indexed)

    @property
    def threshold(self) -> float:
        """Probability at or above which an answer counts as unsupported."""
        return self._network.blend.calibration.threshold

    def judging(self, texts: tuple[str, ...], question: str = "") -> SentenceJudge:
        """Return the judge of sentences for these passages and this question."""
        context, calibration = self._context(texts), self._network.blend.calibration
        odds = partial(self._odds, context)
        return SentenceJudge(context.passages, odds, calibration, shipped(), question)

    def _odds(self, context: Context, text: str, readings: Sequence[SentenceReading]) -> Floats:
        forests = shipped().parts(matrix(readings))
        return self._network.blend.odds(forests, self._network.log_odds(text, readings, context))

    def _indexed(self, texts: tuple[str, ...]) -> Context:
        return self._network.context(indexed(texts))
