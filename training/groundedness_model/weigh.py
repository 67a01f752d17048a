"""Fit the blend of network and forests, on answers that neither has seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from evals.evaluators.groundedness.model import Floats, together
from evals.evaluators.groundedness_model.blend import Blend
from training.groundedness.examples import Sentences
from training.groundedness.fit import (
    FOLDS,
    SEED,
    UNCALIBRATED,
    Bools,
    at_base_rate,
    calibrated,
    checked,
)

_SHARES = np.linspace(0, 1, 21).tolist()


@dataclass(frozen=True, slots=True)
class SentenceOdds:
    """The log-odds of answers' sentences by forests and network."""

    sentences: Sentences
    answers: int
    """Number of answers."""
    forests: Floats
    """The two columns of `Model.parts`."""
    network: Floats

    def of(self, answers: Bools) -> "SentenceOdds":
        """Return the log-odds of the answers in the mask, renumbered."""
        data = self.sentences
        rows, number = data.of(answers), np.cumsum(answers) - 1
        some = Sentences(
            rows=data.rows[rows],
            excess=data.excess[rows],
            answer=number[data.answer[rows]],
            unsupported=data.unsupported[rows],
            contradicted=data.contradicted[rows],
        )
        return SentenceOdds(some, int(answers.sum()), self.forests[rows], self.network[rows])

    def together(self, odds: Floats) -> Floats:
        """Return the answers' log-odds from their sentences', without the checks."""
        return together(odds, self.sentences.answer, self.answers)

    def probability(self, blend: Blend) -> Floats:
        """Return the answers' probabilities by the blend, with the checks."""
        raw, calibration = blend.odds(self.forests, self.network), blend.calibration
        return calibration.probability(checked(raw, self.sentences, self.answers, calibration))


def fit_blend(odds: SentenceOdds, label: NDArray[np.int64]) -> Blend:
    """Return the calibrated blend with the least log loss at the base rate."""
    weight = at_base_rate(label)

    def calibrated_at(share: float) -> Blend:
        raw = Blend(share, UNCALIBRATED).odds(odds.forests, odds.network)
        return Blend(share, calibrated(raw, odds.sentences, label))

    def loss(blend: Blend) -> float:
        of_answers = blend.calibration.of_answers(
            blend.odds(odds.forests, odds.network), odds.sentences.answer, odds.answers
        )
        probability = blend.calibration.probability(of_answers)
        return float(log_loss(label, probability, sample_weight=weight))

    return min(map(calibrated_at, _SHARES), key=loss)


def cross_fit_blend(
    odds: SentenceOdds, label: NDArray[np.int64], groups: Sequence[str]
) -> Iterator[tuple[frozenset[str], Blend]]:
    """Yield, for each fold, its groups and the blend fitted on the other folds."""
    names = np.array(groups)
    folds = GroupKFold(min(FOLDS, len(set(groups))), shuffle=True, random_state=SEED + 1)
    for known, tested in folds.split(names, groups=names):
        used = np.zeros(len(label), dtype=np.bool_)
        used[known] = True
        yield frozenset(names[tested].tolist()), fit_blend(odds.of(used), label[used])
