"""Make what is shipped of one fold's layers, and measure it on the fifth that they never saw.

    python -m evals.evaluators.groundedness_model.train.finish --data FOLDER --minilm WHEEL \
        --out FOLDER --fold 0 --out-of-fold FILE

The 8-bit network that is written is the one that is measured. How much it counts beside the
forests is fitted on that fifth, and measured there by cross-fitting.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor

from evals.evaluators.groundedness.features import read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness.train.data import Labelled, load
from evals.evaluators.groundedness.train.examples import corrupted
from evals.evaluators.groundedness.train.fit import SEED, at_base_rate, f1
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
    parser.add_argument(
        "--layers", type=Path, nargs="+", help="layers or checkpoints, of which the mean is taken"
    )
    parser.add_argument("--weights", type=Path, default=FOLDER)
    parser.add_argument("--out-of-fold", type=Path, help="where to keep what was measured on")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    _export(args)
    answers = load(args.data / TRAINED)
    unseen = splits(answers)[args.fold][1]
    kept = args.out / f"forests{args.fold}.npz"
    own, made = forests_without(args.data, unseen, shipped().calibration, kept)
    network = Network(shipped().rarity, args.weights)
    fold = _judged(own, answers, network)
    wrong = _judged(made, corrupted(answers, SEED), network)
    blend = weighed(fold.said, fold.label)
    _write(args.weights, blend)
    found = OutOfFold(len(fold.answers), len(wrong.answers))
    for tested, fitted in cross_weighed(fold.said, fold.label, fold.groups):
        names = set(fold.groups[tested].tolist())
        found.judge(tested, fitted, fold.said)
        found.judge_corrupted(np.isin(wrong.groups, list(names)), fitted, wrong.said)
    if args.out_of_fold:
        np.savez(
            args.out_of_fold,
            allow_pickle=False,
            answer=fold.numbers,
            probability=found.probability,
            made=wrong.numbers,
            made_probability=found.corrupted,
            network=fold.said.network,
            forests=_by_forests(fold.said),
            made_forests=_by_forests(wrong.said),
        )
    told = {"fold": args.fold, "answers": len(fold.answers), "weights": asdict(blend)}
    told["hash"] = Network(shipped().rarity, args.weights).hash
    told |= _measured(fold, wrong, found)
    print(json.dumps(told))  # noqa: T201 - the command's result


def _export(args: argparse.Namespace) -> None:
    """Write the network and its vocabulary; how it is weighed comes later."""
    lower, upper = from_minilm(minilm.weights(args.minilm))
    files = args.layers or [args.out / f"fold{args.fold}.upper"]
    upper.load_state_dict(_mean([torch.load(file, weights_only=True) for file in files]))
    args.weights.mkdir(parents=True, exist_ok=True)
    export_lower(lower, args.weights / LOWER)
    export_upper(upper, args.weights / UPPER)
    minilm.save_tokenizer(args.minilm, args.weights / VOCABULARY)
    _write(args.weights, Blend(1.0, 1.0, 0.0, 0.5))


def _measured(fold: "Fold", wrong: "Fold", found: "OutOfFold") -> dict[str, object]:
    """Return what the forests, the network and both are worth on answers that trained none."""
    label, said, by_forests = fold.label, fold.said, _by_forests(fold.said)
    called = by_forests >= shipped().calibration.threshold
    kinds = np.array([item.kind for item in wrong.answers])
    return {
        "auroc": {
            "network alone": _auroc(label, worst(said.answer, said.network)),
            "forests": _auroc(label, worst(said.answer, said.forests)),
            "forests, checked": _auroc(label, by_forests),
            "both": _auroc(label, found.unchecked),
            "both, checked": _auroc(label, found.probability),
        },
        "gain_95": _gain(fold, by_forests, found.probability),
        "f1_at_base_rate": {
            "forests, checked": _f1(called, label),
            "both, checked": _f1(found.flagged, label),
        },
        "flagged_corrupted": {
            str(kind): round(float(found.corrupted_flagged[kinds == kind].mean()), 3)
            for kind in np.unique(kinds)
        },
    }


def _gain(fold: "Fold", before: Floats, after: Floats) -> list[float]:
    """Return the interval of the gain in AUROC, by drawing questions again."""
    rng = np.random.default_rng(SEED)
    names, at = np.unique(fold.groups, return_inverse=True)
    rows = [np.flatnonzero(at == name) for name in range(len(names))]
    gains = []
    for _ in range(1000):
        drawn = np.concatenate([rows[n] for n in rng.integers(len(names), size=len(names))])
        if 0 < fold.label[drawn].sum() < len(drawn):
            label = fold.label[drawn]
            gains.append(roc_auc_score(label, after[drawn]) - roc_auc_score(label, before[drawn]))
    return [round(float(q), 4) for q in np.quantile(gains, (0.025, 0.975))]


@dataclass(frozen=True, slots=True)
class Fold:
    """Answers of one fold with what both say of their sentences."""

    said: Sentences
    numbers: NDArray[np.int64]
    answers: Sequence[Labelled]

    @property
    def label(self) -> NDArray[np.int64]:
        """1 where the answer is unsupported."""
        return np.array([item.label for item in self.answers])

    @property
    def groups(self) -> NDArray[np.str_]:
        """Each answer's question."""
        return np.array([item.group for item in self.answers])


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


def _judged(beside: Beside, answers: Sequence[Labelled], network: Network) -> Fold:
    """Return the answers that the forests judged, with what the network says of them."""
    numbers, compact = np.unique(beside.answer, return_inverse=True)
    chosen = [answers[number] for number in numbers.tolist()]
    rarity, said, contexts = shipped().rarity, list[Floats](), dict[str, Context]()
    for item in chosen:
        if item.context not in contexts:
            contexts = {item.context: network.context(indexed((item.context,)))}
        context = contexts[item.context]
        readings = read(item.answer, sentences_of(item.answer), context.passages, rarity)
        said.append(network.log_odds(item.answer, readings, context))
    sentences = Sentences(compact, beside.odds, beside.excess, np.concatenate(said))
    return Fold(sentences, numbers, chosen)


def _by_forests(judged: Sentences) -> Floats:
    """Return the answers' probabilities by the forests and checks alone."""
    c = shipped().calibration
    return judged.worst(Blend(c.slope, 0.0, c.intercept, c.threshold))


def _auroc(label: NDArray[np.int64], odds: Floats) -> float:
    return round(float(roc_auc_score(label, odds)), 4)


def _f1(flagged: Bools, label: NDArray[np.int64]) -> float:
    return round(f1(flagged, label, at_base_rate(label)), 4)


def _mean(kept: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:  # Any: a checkpoint's parts
    """Return the mean of several states of the layers: a run broken off is noisier than it."""
    states = [one.get("upper", one) for one in kept]
    return {name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]}


def _write(folder: Path, blend: Blend) -> None:
    (folder / BLEND).write_text(json.dumps(asdict(blend), indent=2) + "\n")


if __name__ == "__main__":
    main()
