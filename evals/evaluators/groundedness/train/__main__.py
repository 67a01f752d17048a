"""Train the groundedness model: `python -m evals.evaluators.groundedness.train --data FOLDER`.

The folder holds `ragtruth_qa.jsonl.gz` (labelled answers), and `halueval_qa.jsonl.gz` with
`halueval_general.jsonl.gz` (English, for word counts alone). Needs scikit-learn.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from evals.evaluators.groundedness.features import Rarity
from evals.evaluators.groundedness.model import FILE, to_arrays
from evals.evaluators.groundedness.train.data import fingerprint, load, texts
from evals.evaluators.groundedness.train.examples import corrupted, sentences
from evals.evaluators.groundedness.train.fit import (
    SEED,
    Corpus,
    at_base_rate,
    calibrated,
    cross_fit,
    f1,
    fit,
    rarity,
    with_calibration,
)

COUNTED = ("halueval_qa.jsonl.gz", "halueval_general.jsonl.gz")
TRAINED = "ragtruth_qa.jsonl.gz"


def corpus_of(folder: Path) -> tuple[Corpus, Rarity]:
    """Return the training data of a folder, and the word counts."""
    words = rarity(chain.from_iterable(texts(folder / name) for name in COUNTED))
    answers = load(folder / TRAINED)
    made = corrupted(answers, SEED)
    return Corpus(answers, sentences(answers, words), made, sentences(made, words)), words


def main(argv: Sequence[str] | None = None) -> None:
    """Fit, calibrate out of fold, write the file, and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m evals.evaluators.groundedness.train")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=FILE)
    args = parser.parse_args(argv)
    corpus, words = corpus_of(args.data)
    label = np.array([item.label for item in corpus.answers])
    raw = cross_fit(corpus, words, checked=False).answers
    calibration = calibrated(raw, label)
    every = np.ones(len(label), dtype=np.bool_), np.ones(len(corpus.corrupted), dtype=np.bool_)
    model = with_calibration(fit(corpus, words, *every), calibration)
    arrays = to_arrays(model)
    arrays["trained"] = np.array([fingerprint(i) for i in corpus.answers], dtype=np.uint32)
    np.savez_compressed(args.out, allow_pickle=False, **arrays)
    flagged = expit(calibration.slope * raw + calibration.intercept) >= calibration.threshold
    measured = {
        "answers": len(label),
        "corrupted": len(corpus.corrupted),
        "auroc": round(float(roc_auc_score(label, raw)), 4),
        "f1_at_base_rate": round(f1(flagged, label, at_base_rate(label)), 4),
        "threshold": round(calibration.threshold, 4),
        "bytes": args.out.stat().st_size,
    }
    print(json.dumps(measured))  # noqa: T201 - the command's result


if __name__ == "__main__":
    main()
