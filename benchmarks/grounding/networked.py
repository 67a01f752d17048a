"""Answers judged by the network and the forests together."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.grounding.judged import SEED, Floats, JudgedFile, cpu_ms, trained_on
from evals.evaluators.groundedness.judgement import Judgement, SentenceJudge
from evals.evaluators.groundedness_model import GroundednessModel
from training.groundedness.beside import values_beside
from training.groundedness.data import Labelled, load
from training.groundedness.examples import corrupted
from training.groundedness.held_out_edits import edited_pairs
from training.groundedness.twin_examples import duels_of


def networked(file: Path, kept: Path | None, *, pairs: bool = True) -> JudgedFile | None:
    """Return a file's answers as judged by both models, which were not trained on them.

    For answers that trained the models, `kept` has the out-of-fold judgements of single answers;
    without it, return None for such a file. Without `pairs`, single answers only.
    """
    answers, evaluator = load(file), GroundednessModel()
    pairs &= not trained_on(answers) and not trained_on(answers, "compared")

    def judge(item: Labelled) -> Judgement | None:
        return evaluator.judge(item.answer, (item.context,), item.question)

    def judge_of(item: Labelled) -> SentenceJudge:
        return evaluator.judging((item.context,), item.question)

    def probabilities(items: Sequence[Labelled]) -> Floats:
        found = map(judge, items)
        return np.array([one.probability if one else 0.0 for one in found])

    made: Sequence[Labelled] = corrupted(answers, SEED) if pairs else ()
    edits = edited_pairs(answers, SEED + 3) if pairs else []
    if not trained_on(answers):
        how = "shipped model"
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
        beside=values_beside(duels_of(answers, made), judge_of) if pairs else None,
        edit_kinds=[duel.kind for duel in edits],
        edits_beside=values_beside(edits, judge_of) if pairs else None,
        cpu_ms=cpu_ms(answers[:200], judge),
        evaluator=evaluator.name,
        threshold=evaluator.threshold,
    )
