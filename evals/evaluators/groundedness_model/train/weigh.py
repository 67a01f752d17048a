"""Weigh the network against the forests, on answers that neither has seen."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from evals.evaluators.groundedness.train.fit import FOLDS, SEED, at_base_rate, f1
from evals.evaluators.groundedness_model.blend import Blend

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_SHARES = (0.0, *np.geomspace(0.1, 30.0, 40).tolist())
"""How many times as much as the forests the network may count."""
_THRESHOLDS = expit(np.arange(logit(0.05), logit(0.6), 0.05))


@dataclass(frozen=True, slots=True)
class Sentences:
    """What both say of each sentence; `answer` counts from 0 without gaps."""

    answer: NDArray[np.int64]
    forests: Floats
    excess: Floats
    network: Floats

    def of(self, answers: Bools) -> "Sentences":
        """Return the sentences of some answers, numbered anew."""
        rows = answers[self.answer]
        number = np.cumsum(answers) - 1
        return Sentences(
            number[self.answer[rows]], self.forests[rows], self.excess[rows], self.network[rows]
        )

    def worst(self, blend: Blend, *, checked: bool = True) -> Floats:
        """Return each answer's probability."""
        excess = self.excess if checked else np.full(len(self.excess), -np.inf)
        return worst(self.answer, blend.probability(self.forests, self.network, excess))


def worst(answer: NDArray[np.int64], values: Floats) -> Floats:
    """Return each answer's highest sentence."""
    found = np.full(int(answer.max()) + 1, -np.inf)
    np.maximum.at(found, answer, values)
    return found


def weighed(sentences: Sentences, label: NDArray[np.int64], share: float | None = None) -> Blend:
    """Return the weights of the least loss at the base rate, and the threshold of the best F1.

    With a `share` the network counts that many times as much as the forests.
    """
    weight, best = at_base_rate(label), None
    for tried in _SHARES if share is None else (share,):
        odds = worst(sentences.answer, sentences.forests + tried * sentences.network)
        platt = LogisticRegression(C=1e6).fit(odds[:, None], label, sample_weight=weight)
        probability = platt.predict_proba(odds[:, None])[:, 1]
        loss = log_loss(label, probability, sample_weight=weight)
        if best is None or loss < best[0]:
            best = loss, tried, float(platt.coef_[0, 0]), float(platt.intercept_[0])
    assert best is not None  # noqa: S101 - there is at least one share
    _, found, slope, intercept = best
    blend = Blend(slope, slope * found, intercept, 0.5)
    probability = sentences.worst(blend, checked=False)
    scores = [f1(probability >= t, label, weight) for t in _THRESHOLDS]
    threshold = float(_THRESHOLDS[int(np.argmax(scores))])
    return Blend(blend.forests, blend.network, blend.intercept, threshold)


def cross_weighed(
    sentences: Sentences, label: NDArray[np.int64], groups: NDArray[np.str_]
) -> Iterator[tuple[Bools, Blend]]:
    """Yield some of the answers with the weights that the others gave."""
    folds = GroupKFold(min(FOLDS, len(set(groups.tolist()))), shuffle=True, random_state=SEED)
    for _, test in folds.split(groups, groups=groups):
        tested = np.zeros(len(label), dtype=np.bool_)
        tested[test] = True
        yield tested, weighed(sentences.of(~tested), label[~tested])
