"""Claims of public data sets, labelled by whether a text supports them.

The network learns from them beside RAGTruth's answers. Each set is read from a checkout of the
repository that publishes it; all checkouts lie in one folder, each by its repository's name.
"""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from training.groundedness.data import Labelled

_PUBLISHED = "(meta data) PUBLISH"
"""How WiCE marks the lines with a web page's publisher and day."""
_BEGIN = ("topicalchat/begin_dev_tc.tsv", "cmu-dog/begin_dev_cmu.tsv")
_GENERIC = "Generic"
"""BEGIN's label of answers that claim nothing."""


def claims(folder: Path) -> Iterator[Labelled]:
    """Yield the claims of all sets, in a fixed order.

    Raises `SystemExit` with the repository's address if a checkout is missing.
    """
    for repository, read in _SETS.items():
        name = repository.rpartition("/")[2]
        if not (folder / name).is_dir():
            raise SystemExit(f"{folder / name} is missing: git clone https://{repository}")
        yield from read(folder / name)


def _fool_me_twice(folder: Path) -> Iterator[Labelled]:
    for row in _json_lines(folder / "dataset/dev.jsonl", folder / "dataset/test.jsonl"):
        found, gold = row["retrieved_evidence"], row["gold_evidence"]
        text = " ".join(dict.fromkeys(each["text"] for each in (*found, *gold)))
        yield _claim(text, row["text"], supported=row["label"] != "REFUTES")


def _counterfactual(folder: Path) -> Iterator[Labelled]:
    """Yield SNLI's sentences, and those with one of both revised to another label."""
    for part in ("original", "revised_combined"):
        for row in _table(folder / f"NLI/{part}/train.tsv", quoting=csv.QUOTE_NONE):
            supported = row["gold_label"] == "entailment"
            yield _claim(row["sentence1"], row["sentence2"], supported=supported)


def _symmetric(folder: Path) -> Iterator[Labelled]:
    files = (folder / f"symmetric_v0.2/fever_symmetric_{part}.jsonl" for part in ("dev", "test"))
    for row in _json_lines(*files):
        text = row.get("evidence") or row["evidence_sentence"]
        label = row.get("label") or row["gold_label"]
        yield _claim(text, row["claim"], supported=label == "SUPPORTS")


def _begin(folder: Path) -> Iterator[Labelled]:
    for file in _BEGIN:
        for row in _table(folder / file):
            if row["begin_label"] != _GENERIC:
                supported = row["begin_label"] == "Fully attributable"
                yield _claim(row["knowledge"], row["response"], supported=supported)


def _wice(folder: Path) -> Iterator[Labelled]:
    for row in _json_lines(folder / "data/entailment_retrieval/claim/test.jsonl"):
        text = "\n".join(line for line in row["evidence"] if not line.startswith(_PUBLISHED))
        yield _claim(text, row["claim"], supported=row["label"] == "supported")


def _claim(text: str, claim: str, *, supported: bool) -> Labelled:
    """Return a claim; all of it is marked if it is unsupported."""
    marked = () if supported else ((0, len(claim)),)
    return Labelled(
        id=claim, group=text, context=text, answer=claim, label=int(not supported), spans=marked
    )


def _json_lines(*files: Path) -> Iterator[dict[str, Any]]:  # Any: rows of JSON
    for file in files:
        with file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _table(file: Path, **form: Any) -> Iterator[dict[str, str]]:  # Any: arguments of `csv`
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", **form)


_SETS: dict[str, Callable[[Path], Iterator[Labelled]]] = {
    "github.com/google-research/fool-me-twice": _fool_me_twice,
    "github.com/acmi-lab/counterfactually-augmented-data": _counterfactual,
    "github.com/TalSchuster/FeverSymmetric": _symmetric,
    "github.com/google/BEGIN-dataset": _begin,
    "github.com/ryokamoi/wice": _wice,
}
