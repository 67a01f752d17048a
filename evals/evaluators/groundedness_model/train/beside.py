"""What the forests say of a fold's answers when they were fitted without them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.model import Model
from evals.evaluators.groundedness.train.__main__ import corpus_of
from evals.evaluators.groundedness.train.data import Labelled
from evals.evaluators.groundedness.train.examples import Sentences
from evals.evaluators.groundedness.train.fit import Bools, fit, with_calibration

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Beside:
    """The sentences of a fold's answers, or of the corrupted ones made of them, in order."""

    answer: NDArray[np.int64]
    odds: Floats
    excess: Floats


def forests_without(
    data: Path, unseen: frozenset[int], shipped: Model, kept: Path
) -> tuple[Beside, Beside, Sequence[Labelled]]:
    """Return what forests fitted without some answers say of these and of them corrupted.

    Kept in a file between runs, since fitting takes minutes. The third is all corrupted answers.
    """
    corpus, words = corpus_of(data)
    if not kept.exists():
        groups = frozenset(corpus.answers[at].group for at in unseen)
        tested, of_tested = corpus.of_groups(groups)
        model = fit(corpus, words, ~tested, ~of_tested)
        model = with_calibration(model, shipped.calibration)
        arrays = _said(model, corpus.sentences, tested, "")
        arrays |= _said(model, corpus.corrupted_sentences, of_tested, "made_")
        np.savez(kept, allow_pickle=False, **arrays)
    with np.load(kept, allow_pickle=False) as found:
        both = [
            Beside(found[f"{of}answer"], found[f"{of}odds"], found[f"{of}excess"])
            for of in ("", "made_")
        ]
    return both[0], both[1], corpus.corrupted


def _said(model: Model, data: Sentences, chosen: Bools, of: str) -> dict[str, NDArray[np.generic]]:
    rows = data.of(chosen)
    return {
        f"{of}answer": data.answer[rows],
        f"{of}odds": model.raw(data.rows[rows]),
        f"{of}excess": model.excess(data.rows[rows]),
    }
