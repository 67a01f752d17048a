"""Answers judged by the network and the forests together."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.grounding.judged import SEED, Floats, JudgedFile, cpu_ms, trained_on
from evals.evaluators.groundedness.judgement import Judgement
from evals.evaluators.groundedness_model import GroundednessModel
from training.groundedness.data import Labelled, load
from training.groundedness.examples import corrupted


def networked(file: Path, kept: Path | None) -> JudgedFile | None:
    """Return a file's answers as judged by both models, which were not trained on them.

    For answers that trained the models, `kept` has the out-of-fold judgements; without it, return
    None for such a file.
    """
    answers, evaluator = load(file), GroundednessModel()

    def judge(item: Labelled) -> Judgement | None:
        return evaluator.judge(item.answer, (item.context,), item.question)

    made: Sequence[Labelled] = ()
    if not trained_on(answers):
        found = [judge(item) for item in answers]
        probability: Floats = np.array([one.probability if one else 0.0 for one in found])
        how, of_made = "shipped model", np.zeros(0)
    elif kept is None:
        return None
    else:
        how, made = "out of fold", corrupted(answers, SEED)
        with np.load(kept, allow_pickle=False) as arrays:
            probability, of_made = arrays["probability"], arrays["made"]
    numbers = {item.id: at for at, item in enumerate(answers)}
    return JudgedFile(
        name=file.name.removesuffix(".jsonl.gz"),
        how=how,
        answers=answers,
        probability=probability,
        corrupted=made,
        corrupted_probability=of_made,
        original=np.array([numbers[item.id] for item in made], dtype=np.int64),
        cpu_ms=cpu_ms(answers[:200], judge),
        evaluator=evaluator.name,
        threshold=evaluator.threshold,
    )
