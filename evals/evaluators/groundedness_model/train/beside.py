"""What the forests say of a fold's answers when they were fitted without them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.model import Calibration, Model
from evals.evaluators.groundedness.train.__main__ import corpus_of
from evals.evaluators.groundedness.train.examples import Sentences
from evals.evaluators.groundedness.train.fit import Bools, fit, with_calibration
from evals.evaluators.groundedness_model.blend import of_forests

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Beside:
    """The sentences of a fold's answers, or of the corrupted ones made of them, in order."""

    answer: NDArray[np.int64]
    odds: Floats
    excess: Floats


def forests_without(
    data: Path, unseen: frozenset[int], calibration: Calibration, kept: Path
) -> tuple[Beside, Beside]:
    """Return what forests fitted without some answers say of these and of them corrupted.

    Kept in a file between runs, since fitting takes minutes.
    """
    if not kept.exists():
        corpus, words = corpus_of(data)
        groups = frozenset(corpus.answers[at].group for at in unseen)
        tested, of_tested = corpus.of_groups(groups)
        model = with_calibration(fit(corpus, words, ~tested, ~of_tested), calibration)
        arrays = _said(model, corpus.sentences, tested, "")
        arrays |= _said(model, corpus.corrupted_sentences, of_tested, "made_")
        np.savez(kept, allow_pickle=False, **arrays)
    with np.load(kept, allow_pickle=False) as found:
        own, made = (
            Beside(found[f"{of}answer"], found[f"{of}odds"], found[f"{of}excess"])
            for of in ("", "made_")
        )
    return own, made


def _said(model: Model, data: Sentences, chosen: Bools, of: str) -> dict[str, NDArray[np.generic]]:
    rows = data.of(chosen)
    return {
        f"{of}answer": data.answer[rows],
        f"{of}odds": of_forests(model, data.rows[rows]),
        f"{of}excess": data.excess[rows],
    }
