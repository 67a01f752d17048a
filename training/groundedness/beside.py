"""Score pairs of answers with models that never saw their passages."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.comparison import judge_beside
from evals.evaluators.groundedness.judgement import SentenceJudge
from training.groundedness.data import Labelled
from training.groundedness.twin_examples import Duel


def values_beside(
    duels: Sequence[Duel], judge_of: Callable[[Labelled], SentenceJudge]
) -> NDArray[np.float64]:
    """Return the scores of both answers of each pair, one row per pair.

    `judge_of` gives the judge of the answers to an answer's question on its passages.
    """
    found = np.ones((len(duels), 2))
    for at, duel in enumerate(duels):
        both = judge_beside(duel.one.answer, duel.other.answer, judge_of(duel.one))
        # An answer without words claims nothing and scores 1.
        found[at] = [1.0 if judged is None else judged.score for judged in both]
    return found
