"""Train the groundedness model: `python -m training.groundedness --data FOLDER`.

The folder holds `ragtruth_qa.jsonl.gz` (labelled answers), `summedits.jsonl.gz` (edited summaries),
and `halueval_qa.jsonl.gz` with `halueval_general.jsonl.gz` (English, for its words alone). Needs
scikit-learn and PyTorch.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from evals.evaluators.groundedness.features import Rarity
from evals.evaluators.groundedness.judgement import SentenceJudge, by_forests, indexed
from evals.evaluators.groundedness.model import (
    FILE,
    Calibration,
    Floats,
    any_of,
    to_arrays,
)
from training.groundedness.beside import values_beside
from training.groundedness.data import (
    COUNTED,
    EDITED,
    TRAINED,
    Labelled,
    fingerprint,
    load,
    texts,
)
from training.groundedness.edited_summaries import edited_summaries
from training.groundedness.examples import corrupted, sentences
from training.groundedness.fit import (
    SEED,
    Bools,
    Corpus,
    OutOfFold,
    at_base_rate,
    calibrated,
    checked,
    choices,
    cross_fit,
    f1,
    fit,
    rarity,
    with_calibration,
)
from training.groundedness.held_out_edits import edited_pairs
from training.groundedness.twin_examples import (
    Duel,
    contrasts,
    duels_of,
    exchanged,
    made_duels,
    real,
)


def corpus_of(folder: Path) -> tuple[Corpus, Rarity]:
    """Return the training data in a folder, and the rarity of words."""
    counted = [text for name in COUNTED for text in texts(folder / name)]
    words = rarity(counted)
    answers = load(folder / TRAINED)
    made = corrupted(answers, SEED)
    # Other seeds than those of the pairs that are measured.
    duels = made_duels(answers, SEED + 1) + real(answers)
    duels += exchanged(answers, SEED + 2)
    odds = choices(answers, counted)
    summaries = edited_summaries(folder / EDITED)
    of_groups = {**odds.without, **dict.fromkeys((d.one.group for d in summaries), odds.of_all)}
    return Corpus(
        answers,
        sentences(answers, words),
        made,
        sentences(made, words),
        summaries,
        contrasts([*duels, *summaries], words, of_groups),
        odds,
    ), words


def main(argv: Sequence[str] | None = None) -> None:
    """Fit, calibrate out of fold, write the file, and print the measurements."""
    parser = argparse.ArgumentParser(prog="python -m training.groundedness")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--out-of-fold", type=Path, help="file for the out-of-fold results")
    args = parser.parse_args(argv)
    corpus, words = corpus_of(args.data)
    label = np.array([item.label for item in corpus.answers])
    found = cross_fit(corpus, words)
    calibration = calibrated(any_of(*found.sentences.T), corpus.sentences, label)
    model = with_calibration(fit(corpus, words, corpus.choices.of_all), calibration)
    arrays = to_arrays(model)
    compared = load(args.data / EDITED)
    for name, items in (("trained", corpus.answers), ("compared", compared)):
        arrays[name] = np.array([fingerprint(item) for item in items], dtype=np.uint32)
    np.savez_compressed(args.out, allow_pickle=False, **arrays)
    if args.out_of_fold:
        edits = edited_pairs(corpus.answers, SEED + 3)
        beside, real, edited, summaries = _beside(corpus, found, calibration, edits)
        own, made = _checked(corpus, found, calibration)
        np.savez(
            args.out_of_fold,
            checked=own,
            made=made,
            beside=beside,
            real_beside=real,
            edit_kinds=np.array([duel.kind for duel in edits]),
            edits_beside=edited,
            summary_kinds=np.array([duel.kind for duel in corpus.summaries]),
            summaries_beside=summaries,
            sentences=found.sentences,
            made_sentences=found.corrupted,
        )
    print(json.dumps(_measured(corpus, found, calibration)))  # noqa: T201 - the command's result


def _checked(corpus: Corpus, found: OutOfFold, calibration: Calibration) -> tuple[Floats, Floats]:
    """Return the log-odds of the answers and of the corrupted ones, with the checks applied."""
    own, made = any_of(*found.sentences.T), any_of(*found.corrupted.T)
    return (
        checked(own, corpus.sentences, len(corpus.answers), calibration),
        checked(made, corpus.corrupted_sentences, len(corpus.corrupted), calibration),
    )


def _beside(
    corpus: Corpus, found: OutOfFold, calibration: Calibration, edits: Sequence[Duel]
) -> tuple[Floats, ...]:
    """Return the pair scores of corrupted, two models', and edited answers, and of summaries."""
    models = {id(m): with_calibration(m, calibration) for m in found.models.values()}

    def judge_of(item: Labelled) -> SentenceJudge:
        model = models[id(found.models[item.group])]
        return by_forests(indexed((item.context,)), item.question, model)

    pairs = duels_of(corpus.answers, corpus.corrupted)
    return (
        values_beside(pairs, judge_of),
        values_beside(real(corpus.answers), judge_of),
        values_beside(edits, judge_of),
        values_beside(corpus.summaries, judge_of),
    )


def _measured(corpus: Corpus, found: OutOfFold, calibration: Calibration) -> dict[str, object]:
    """Return the measurements by models that did not see the answer's question."""
    label = np.array([item.label for item in corpus.answers])
    kinds = np.array([item.kind for item in corpus.corrupted])
    raw = calibration.of_answers(any_of(*found.sentences.T), corpus.sentences.answer, len(label))
    with_checks, made = _checked(corpus, found, calibration)

    def flagged(log_odds: Floats) -> Bools:
        return np.asarray(calibration.probability(log_odds) >= calibration.threshold)

    caught = flagged(made)
    return {
        "answers": len(label),
        "corrupted": len(kinds),
        "auroc_of_forests": round(float(roc_auc_score(label, raw)), 4),
        "auroc": round(float(roc_auc_score(label, with_checks)), 4),
        "f1_of_forests": round(f1(flagged(raw), label, at_base_rate(label)), 4),
        "f1": round(f1(flagged(with_checks), label, at_base_rate(label)), 4),
        "f1_as_found": round(f1(flagged(with_checks), label, np.ones(len(label))), 4),
        "flagged_supported": round(float(flagged(with_checks)[label == 0].mean()), 4),
        "flagged_unsupported": round(float(flagged(with_checks)[label == 1].mean()), 4),
        "flagged_corrupted": {
            str(kind): round(float(caught[kinds == kind].mean()), 3) for kind in np.unique(kinds)
        },
        "threshold": round(calibration.threshold, 4),
    }


if __name__ == "__main__":
    main()
