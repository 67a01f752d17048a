"""Baselines for groundedness that need no model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from evals.evaluators.groundedness.tokens import tokens_of
from training.groundedness.data import Labelled

Floats = NDArray[np.float64]


def length(answers: Sequence[Labelled]) -> Floats:
    """Return the answers' lengths in words."""
    return np.array([float(len(item.answer.split())) for item in answers])


def overlap(answers: Sequence[Labelled]) -> Floats:
    """Return the share of an answer's content words that its passages do not contain."""
    return np.array([_absent_share(item) for item in answers])


def auroc(label: NDArray[np.int64], score: Floats) -> float | None:
    """Return the probability that an unsupported answer scores above a supported one, ties halved.

    Source: the Mann–Whitney statistic. `None` if a class is empty.
    """
    positive = label == 1
    n, m = int(positive.sum()), int((~positive).sum())
    if n == 0 or m == 0:
        return None
    ranks = rankdata(score)
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def _absent_share(item: Labelled) -> float:
    held = {t.form.stem for t in tokens_of(item.context)}
    words = [t.form.stem for t in tokens_of(item.answer) if t.form.is_content]
    return sum(word not in held for word in words) / max(len(words), 1)
