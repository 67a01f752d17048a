"""Answers judged by the network and the forests together, beside the forests alone."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.grounding.judged import SEED, Floats, Judged, trained_on
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.train.data import Labelled, load
from evals.evaluators.groundedness.train.examples import corrupted
from evals.evaluators.groundedness_model import GroundednessModel


def networked(file: Path, kept: Path | None) -> list[Judged]:
    """Return a file's answers as judged by both, where they trained neither.

    Of answers that trained the shipped forests, `kept` holds what models without them said: those
    of one fold alone, which come a second time as judged by the forests of that fold. Without
    `kept` there is nothing to say of such a file.
    """
    answers, evaluator = load(file), GroundednessModel()
    if not trained_on(answers):
        return [_by_shipped(file, answers, evaluator)]
    return [] if kept is None else _out_of_fold(file, answers, evaluator, kept)


def cpu_ms(evaluator: GroundednessModel, answers: Sequence[Labelled], most: int = 200) -> float:
    """Return the processor time an answer; each run of one context indexes and reads it once."""
    chosen = answers[:most]
    indexed.cache_clear()
    started = time.process_time()
    for item in chosen:
        evaluator.judge(item.answer, (item.context,), item.question)
    return (time.process_time() - started) / len(chosen) * 1e3


def _by_shipped(file: Path, answers: Sequence[Labelled], evaluator: GroundednessModel) -> Judged:
    started = time.process_time()
    found = [evaluator.judge(item.answer, (item.context,), item.question) for item in answers]
    spent = (time.process_time() - started) / len(answers) * 1e3
    return Judged(
        name=file.name.removesuffix(".jsonl.gz"),
        how="shipped model",
        answers=answers,
        probability=np.array([judgement.probability if judgement else 0.0 for judgement in found]),
        corrupted=(),
        corrupted_probability=np.zeros(0),
        original=np.zeros(0, dtype=np.int64),
        cpu_ms=spent,
        evaluator=evaluator.name,
        threshold=evaluator.threshold,
    )


def _out_of_fold(
    file: Path, answers: Sequence[Labelled], evaluator: GroundednessModel, kept: Path
) -> list[Judged]:
    with np.load(kept, allow_pickle=False) as arrays:
        number, made_number = arrays["answer"], arrays["made"]
        both, made_both = arrays["probability"], arrays["made_probability"]
        forests, made_forests = arrays["forests"], arrays["made_forests"]
    every = corrupted(answers, SEED)
    made = [every[at] for at in made_number.tolist()]
    chosen = [answers[at] for at in number.tolist()]
    at_id = {item.id: at for at, item in enumerate(chosen)}

    def of(name: str, said: tuple[Floats, Floats], threshold: float, ms: float | None) -> Judged:
        return Judged(
            name=file.name.removesuffix(".jsonl.gz"),
            how="one fold, unseen",
            answers=chosen,
            probability=said[0],
            corrupted=made,
            corrupted_probability=said[1],
            original=np.array([at_id[item.id] for item in made]),
            cpu_ms=ms,
            evaluator=name,
            threshold=threshold,
        )

    spent = cpu_ms(evaluator, chosen)
    limit = shipped().calibration.threshold
    return [
        of("sentence-support", (forests, made_forests), limit, None),
        of(evaluator.name, (both, made_both), evaluator.threshold, spent),
    ]
