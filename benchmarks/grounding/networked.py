"""Answers judged by the network and the forests together."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.grounding.judged import (
    SEED,
    Floats,
    JudgedFile,
    copies_beside,
    cpu_ms,
    trained_on,
)
from evals.evaluators.groundedness.judgement import Judgement, SentenceJudge
from evals.evaluators.groundedness_model import GroundednessModel
from training.groundedness.data import Labelled, load
from training.groundedness.examples import corrupted


def networked(file: Path, kept: Path | None, *, pairs: bool = True) -> JudgedFile | None:
    """Return a file's answers as judged by both models, which were not trained on them.

    For answers that trained the models, `kept` has the out-of-fold judgements of single answers;
    without it, return None for such a file. Without `pairs`, single answers only.
    """
    answers, evaluator = load(file), GroundednessModel()
    kinds, beside, edits_beside = list[str](), None, None

    def judge(item: Labelled) -> Judgement | None:
        return evaluator.judge(item.answer, (item.context,), item.question)

    def judge_of(item: Labelled) -> SentenceJudge:
        return evaluator.judging((item.context,), item.question)

    def probabilities(items: Sequence[Labelled]) -> Floats:
        found = map(judge, items)
        return np.array([one.probability if one else 0.0 for one in found])

    made: Sequence[Labelled] = ()
    if not trained_on(answers):
        how = "shipped model"
        if pairs and not trained_on(answers, "compared"):
            made = corrupted(answers, SEED)
            beside, kinds, edits_beside = copies_beside(answers, made, judge_of)
        probability, of_made = probabilities(answers), probabilities(made)
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
        beside=beside,
        edit_kinds=kinds,
        edits_beside=edits_beside,
        cpu_ms=cpu_ms(answers[:200], judge),
        evaluator=evaluator.name,
        threshold=evaluator.threshold,
    )
