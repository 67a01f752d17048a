"""Make what is shipped of one fold's layers, and measure it on the fifth that they never saw.

    python -m evals.evaluators.groundedness_model.train.finish --data FOLDER --minilm WHEEL \
        --out FOLDER --fold 0 --out-of-fold FILE

The 8-bit network that is written is the one that is measured. How much it counts beside the
forests is fitted on that fifth, and measured there by cross-fitting.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from evals.evaluators.groundedness.features import read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness.train.data import Labelled, load
from evals.evaluators.groundedness.train.fit import at_base_rate, f1
from evals.evaluators.groundedness_model.blend import Blend
from evals.evaluators.groundedness_model.network import (
    BLEND,
    FOLDER,
    LOWER,
    UPPER,
    VOCABULARY,
    Context,
    Network,
)
from evals.evaluators.groundedness_model.train import minilm
from evals.evaluators.groundedness_model.train.__main__ import TRAINED, splits
from evals.evaluators.groundedness_model.train.beside import Beside, forests_without
from evals.evaluators.groundedness_model.train.export import export_lower, export_upper
from evals.evaluators.groundedness_model.train.network import from_minilm
from evals.evaluators.groundedness_model.train.weigh import (
    Bools,
    Floats,
    Sentences,
    cross_weighed,
    weighed,
    worst,
)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the weights, and print what was measured."""
    parser = argparse.ArgumentParser(
        prog="python -m evals.evaluators.groundedness_model.train.finish"
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the training's folder")
    parser.add_argument("--fold", type=int, default=0)
    parser.add_argument("--weights", type=Path, default=FOLDER)
    parser.add_argument("--out-of-fold", type=Path, help="where to keep what was measured on")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    lower, upper = from_minilm(minilm.weights(args.minilm))
    upper.load_state_dict(torch.load(args.out / f"fold{args.fold}.upper", weights_only=True))
    args.weights.mkdir(parents=True, exist_ok=True)
    export_lower(lower, args.weights / LOWER)
    export_upper(upper, args.weights / UPPER)
    minilm.save_tokenizer(args.minilm, args.weights / VOCABULARY)
    _write(args.weights, Blend(1.0, 1.0, 0.0, 0.5))
    answers = load(args.data / TRAINED)
    unseen = splits(answers)[args.fold][1]
    kept = args.out / f"forests{args.fold}.npz"
    own, made, corrupted = forests_without(args.data, unseen, shipped(), kept)
    network = Network(shipped().rarity, args.weights)
    judged, numbers = _beside(own, answers, network)
    made_judged, made_numbers = _beside(made, corrupted, network)
    chosen = [answers[at] for at in numbers]
    wrong = [corrupted[at] for at in made_numbers]
    label = np.array([item.label for item in chosen])
    blend = weighed(judged, label)
    _write(args.weights, blend)
    found = OutOfFold(len(chosen), len(wrong))
    groups = np.array([item.group for item in chosen])
    for tested, fitted in cross_weighed(judged, label, groups):
        found.judge(tested, fitted, judged)
        names = set(groups[tested].tolist())
        found.judge_corrupted(np.array([i.group in names for i in wrong]), fitted, made_judged)
    if args.out_of_fold:
        np.savez(
            args.out_of_fold,
            allow_pickle=False,
            answer=numbers,
            probability=found.probability,
            made=made_numbers,
            made_probability=found.corrupted,
            forests=_shipped_like(judged),
            made_forests=_shipped_like(made_judged),
        )
    kinds = np.array([item.kind for item in wrong])
    told = {
        "fold": args.fold,
        "answers": len(chosen),
        "weights": asdict(blend),
        "hash": Network(shipped().rarity, args.weights).hash,
        "auroc": {
            "network alone": _auroc(label, worst(judged.answer, judged.network)),
            "forests": _auroc(label, worst(judged.answer, judged.forests)),
            "forests, checked": _auroc(label, _shipped_like(judged)),
            "both": _auroc(label, found.unchecked),
            "both, checked": _auroc(label, found.probability),
        },
        "f1_at_base_rate": {
            "forests, checked": _f1(
                _shipped_like(judged) >= shipped().calibration.threshold, label
            ),
            "both, checked": _f1(found.flagged, label),
        },
        "flagged_corrupted": {
            str(kind): round(float(found.corrupted_flagged[kinds == kind].mean()), 3)
            for kind in np.unique(kinds)
        },
    }
    print(json.dumps(told))  # noqa: T201 - the command's result


class OutOfFold:
    """What is said of answers by weights that were fitted without them."""

    def __init__(self, answers: int, corrupted: int) -> None:
        self.probability, self.unchecked = np.zeros(answers), np.zeros(answers)
        self.flagged = np.zeros(answers, dtype=np.bool_)
        self.corrupted = np.zeros(corrupted)
        self.corrupted_flagged = np.zeros(corrupted, dtype=np.bool_)

    def judge(self, tested: Bools, blend: Blend, judged: Sentences) -> None:
        """Judge some answers."""
        part = judged.of(tested)
        self.probability[tested] = part.worst(blend)
        self.unchecked[tested] = part.worst(blend, checked=False)
        self.flagged[tested] = self.probability[tested] >= blend.threshold

    def judge_corrupted(self, tested: Bools, blend: Blend, judged: Sentences) -> None:
        """Judge some corrupted answers."""
        self.corrupted[tested] = judged.of(tested).worst(blend)
        self.corrupted_flagged[tested] = self.corrupted[tested] >= blend.threshold


def _beside(
    beside: Beside, answers: Sequence[Labelled], network: Network
) -> tuple[Sentences, NDArray[np.int64]]:
    """Return what both say of the sentences, and the numbers of the answers that they are of."""
    numbers, compact = np.unique(beside.answer, return_inverse=True)
    rarity, said, contexts = shipped().rarity, list[Floats](), dict[str, Context]()
    for number in numbers.tolist():
        item = answers[number]
        if item.context not in contexts:
            contexts = {item.context: network.context(indexed((item.context,)))}
        context = contexts[item.context]
        readings = read(item.answer, sentences_of(item.answer), context.passages, rarity)
        said.append(network.log_odds(item.answer, readings, context))
    return Sentences(compact, beside.odds, beside.excess, np.concatenate(said)), numbers


def _shipped_like(judged: Sentences) -> Floats:
    """Return the answers' probabilities by the forests and checks alone."""
    c = shipped().calibration
    return judged.worst(Blend(c.slope, 0.0, c.intercept, c.threshold))


def _auroc(label: NDArray[np.int64], odds: Floats) -> float:
    return round(float(roc_auc_score(label, odds)), 4)


def _f1(flagged: Bools, label: NDArray[np.int64]) -> float:
    return round(f1(flagged, label, at_base_rate(label)), 4)


def _write(folder: Path, blend: Blend) -> None:
    (folder / BLEND).write_text(json.dumps(asdict(blend), indent=2) + "\n")


if __name__ == "__main__":
    main()
