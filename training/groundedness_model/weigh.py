"""Weigh the network against the forests, on answers that neither has seen."""

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
class Said:
    """What both say of the sentences of some answers."""

    sentences: Sentences
    answers: int
    forests: Floats
    """As `Model.parts` gives it."""
    network: Floats

    def of(self, answers: Bools) -> "Said":
        """Return what is said of some of the answers, numbered anew."""
        data = self.sentences
        rows, number = data.of(answers), np.cumsum(answers) - 1
        some = Sentences(
            rows=data.rows[rows],
            excess=data.excess[rows],
            answer=number[data.answer[rows]],
            unsupported=data.unsupported[rows],
            contradicted=data.contradicted[rows],
        )
        return Said(some, int(answers.sum()), self.forests[rows], self.network[rows])

    def together(self, odds: Floats) -> Floats:
        """Return the answers' log-odds of their sentences', unchecked."""
        return together(odds, self.sentences.answer, self.answers)

    def probability(self, blend: Blend) -> Floats:
        """Return the answers' probabilities by both and the checks."""
        raw, calibration = blend.odds(self.forests, self.network), blend.calibration
        return calibration.probability(checked(raw, self.sentences, self.answers, calibration))


def weighed(said: Said, label: NDArray[np.int64]) -> Blend:
    """Return the share of the least loss at the base rate, calibrated."""
    weight = at_base_rate(label)

    def calibrated_at(share: float) -> Blend:
        raw = Blend(share, UNCALIBRATED).odds(said.forests, said.network)
        return Blend(share, calibrated(raw, said.sentences, label, lengths=(0.0,)))

    def loss(blend: Blend) -> float:
        odds = blend.calibration.of_answers(
            blend.odds(said.forests, said.network), said.sentences.answer, said.answers
        )
        return float(log_loss(label, blend.calibration.probability(odds), sample_weight=weight))

    return min(map(calibrated_at, _SHARES), key=loss)


def cross_weighed(
    said: Said, label: NDArray[np.int64], groups: Sequence[str]
) -> Iterator[tuple[frozenset[str], Blend]]:
    """Yield the groups of some answers with the blend that the others gave."""
    names = np.array(groups)
    folds = GroupKFold(min(FOLDS, len(set(groups))), shuffle=True, random_state=SEED + 1)
    for known, tested in folds.split(names, groups=names):
        used = np.zeros(len(label), dtype=np.bool_)
        used[known] = True
        yield frozenset(names[tested].tolist()), weighed(said.of(used), label[used])
