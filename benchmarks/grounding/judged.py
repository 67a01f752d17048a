"""The answers of a file with their predicted probabilities of being unsupported."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness import Groundedness
from evals.evaluators.groundedness.judgement import (
    Judgement,
    SentenceJudge,
    by_forests,
    indexed,
    judge,
)
from evals.evaluators.groundedness.model import FILE, Model, shipped
from training.groundedness.beside import values_beside
from training.groundedness.data import Labelled, fingerprint, load
from training.groundedness.examples import corrupted, sentences
from training.groundedness.held_out_edits import edited_pairs
from training.groundedness.twin_examples import Duel, duels_of, real

Floats = NDArray[np.float64]
SEED = 20261121
"""The training's seed, so that the corrupted answers are the same."""


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A file's answers and corrupted copies, judged by models that were not trained on them."""

    name: str
    how: str
    """`shipped model`, or `out of fold` if the file trained it."""
    answers: Sequence[Labelled]
    probability: Floats
    corrupted: Sequence[Labelled]
    corrupted_probability: Floats
    original: NDArray[np.int64]
    """Index of the answer from which each corrupted one was made."""
    cpu_ms: float | None
    """CPU time per answer, including the passages' index."""
    beside: Floats | None = None
    """Scores of each corrupted answer's original and itself, judged as a pair."""
    real: Sequence[Duel] = ()
    """Two models' answers to one question, if the file has them."""
    real_beside: Floats | None = None
    """Their scores, judged as a pair."""
    edit_kinds: Sequence[str] = ()
    edits_beside: Floats | None = None
    """Scores of supported answers and their edited copies, judged as a pair."""
    evaluator: str = Groundedness.name
    threshold: float = field(default_factory=lambda: shipped().calibration.threshold)

    @property
    def label(self) -> NDArray[np.int64]:
        """1 if the answer is unsupported, else 0."""
        return np.array([item.label for item in self.answers])


def files(folder: Path) -> list[Path]:
    """Return the files of a folder with labelled answers on passages."""
    return [file for file in sorted(folder.glob("*.jsonl.gz")) if load(file)]


def judged(file: Path, kept: Path | None = None, *, pairs: bool = True) -> JudgedFile:
    """Judge a file with the shipped model, or out of fold if its answers trained that one.

    `kept` is the training's `--out-of-fold` output. Without `pairs`, the shipped model judges
    single answers only; of summaries that trained it in pairs, pairs are out of fold, too.
    """
    answers, model = load(file), shipped()
    calibration = model.calibration
    made = corrupted(answers, SEED)
    numbers = {item.id: at for at, item in enumerate(answers)}
    original = np.array([numbers[item.id] for item in made])
    two_models = real(answers) if "ragtruth" in file.name else []
    kinds, beside, real_beside, edits_beside = list[str](), None, None, None
    if trained_on(answers):
        how = "out of fold"
        raw, raw_made, beside, real_beside = _out_of_fold(kept)
        kinds, edits_beside = _edits_out_of_fold(kept, "edit_kinds", "edits_beside")
    else:
        how, raw, raw_made = "shipped model", _raw(answers, model), _raw(made, model)
        if trained_on(answers, "compared"):
            kinds, edits_beside = _edits_out_of_fold(kept, "summary_kinds", "summaries_beside")
        elif pairs:
            beside, kinds, edits_beside = copies_beside(answers, made, _judge_of)
            real_beside = values_beside(two_models, _judge_of)
    return JudgedFile(
        name=file.name.removesuffix(".jsonl.gz"),
        how=how,
        answers=answers,
        probability=calibration.probability(raw),
        corrupted=made,
        corrupted_probability=calibration.probability(raw_made),
        original=original,
        beside=beside,
        real=two_models,
        real_beside=real_beside,
        edit_kinds=kinds,
        edits_beside=edits_beside,
        cpu_ms=cpu_ms(answers[:400], _by_forests),
    )


def copies_beside(
    answers: Sequence[Labelled],
    made: Sequence[Labelled],
    judge_of: Callable[[Labelled], SentenceJudge],
) -> tuple[Floats, list[str], Floats]:
    """Return the pair scores of corrupted copies, the kinds of edits, and the scores of these."""
    edits = edited_pairs(answers, SEED + 3)
    beside = values_beside(duels_of(answers, made), judge_of)
    return beside, [duel.kind for duel in edits], values_beside(edits, judge_of)


def of_folds(found: JudgedFile, folds: Collection[int]) -> JudgedFile:
    """Return only the answers in some of the training's folds."""
    # Only this needs scikit-learn: a held-out folder is judged without it.
    from training.groundedness.fit import fold_of_groups  # noqa: PLC0415

    fold = fold_of_groups(found.answers)

    def chosen(items: Sequence[Labelled]) -> NDArray[np.int64]:
        return np.flatnonzero([fold[item.group] in folds for item in items])

    answers, made, pairs = map(
        chosen, (found.answers, found.corrupted, [d.one for d in found.real])
    )
    number = {at: n for n, at in enumerate(answers.tolist())}
    return replace(
        found,
        how=f"{found.how}, folds {', '.join(map(str, sorted(folds)))}",
        answers=[found.answers[at] for at in answers],
        probability=found.probability[answers],
        corrupted=[found.corrupted[at] for at in made],
        corrupted_probability=found.corrupted_probability[made],
        original=np.array([number[at] for at in found.original[made].tolist()], dtype=np.int64),
        beside=None if found.beside is None else found.beside[made],
        real=[found.real[at] for at in pairs],
        real_beside=None if found.real_beside is None else found.real_beside[pairs],
    )


def trained_on(answers: Sequence[Labelled], how: str = "trained") -> bool:
    """Return whether any of the answers trained the shipped model; `compared`: in pairs alone."""
    with np.load(FILE, allow_pickle=False) as arrays:
        known = set(arrays[how].tolist())
    return any(fingerprint(item) in known for item in answers)


def cpu_ms(answers: Sequence[Labelled], judge: Callable[[Labelled], object]) -> float:
    """Return the CPU time per answer; consecutive answers on one context index it once."""
    indexed.clear()
    started = time.process_time()
    for item in answers:
        judge(item)
    return (time.process_time() - started) / len(answers) * 1e3


def _judge_of(item: Labelled) -> SentenceJudge:
    return by_forests(indexed((item.context,)), item.question)


def _by_forests(item: Labelled) -> Judgement | None:
    return judge(item.answer, indexed((item.context,)), item.question)


def _raw(answers: Sequence[Labelled], model: Model) -> Floats:
    if not answers:
        return np.zeros(0)
    data = sentences(answers, model.rarity)
    checked = model.calibration.checked(model.raw(data.rows), data.excess)
    return model.calibration.of_checked(checked, data.excess, data.answer, len(answers))


def _edits_out_of_fold(
    kept: Path | None, kinds: str, scores: str
) -> tuple[list[str], Floats | None]:
    if kept is None:
        return [], None
    with np.load(kept, allow_pickle=False) as arrays:
        return arrays[kinds].tolist(), arrays[scores]


def _out_of_fold(kept: Path | None) -> tuple[Floats, Floats, Floats, Floats]:
    if kept is None:
        raise SystemExit(
            "these answers trained the model: name what the training kept of the folds, "
            "--out-of-fold FILE (`python -m training.groundedness --help`)"
        )
    with np.load(kept, allow_pickle=False) as arrays:
        return arrays["checked"], arrays["made"], arrays["beside"], arrays["real_beside"]
