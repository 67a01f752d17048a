"""The claims that the network learns from beside answers: as their repositories publish them."""

import json
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="training needs it")

from training.groundedness_model.claims import claims


def written(folder: Path, name: str, *lines: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def checkouts(tmp_path: Path) -> Path:
    """Return a folder of checkouts with a row or two of each set, of the form that it has."""
    true, refuted = (
        {
            "text": claim,
            "label": label,
            "retrieved_evidence": [{"text": "Bonn lies on the Rhine."}, {"text": "It is old."}],
            "gold_evidence": [{"text": "It is old."}, {"text": "It has a zoo."}],
        }
        for claim, label in (("Bonn has a zoo.", "SUPPORTS"), ("Bonn is new.", "REFUTES"))
    )
    written(tmp_path, "fool-me-twice/dataset/dev.jsonl", json.dumps(true))
    written(tmp_path, "fool-me-twice/dataset/test.jsonl", json.dumps(refuted))
    head = "sentence1\tsentence2\tgold_label"
    nli = "counterfactually-augmented-data/NLI"
    written(tmp_path, f"{nli}/original/train.tsv", head, 'A "dog runs.\tIt runs.\tentailment')
    written(tmp_path, f"{nli}/revised_combined/train.tsv", head, "A dog runs.\tIt sits.\tneutral")
    symmetric = "FeverSymmetric/symmetric_v0.2/fever_symmetric"
    one = {"evidence": "He is Dutch.", "claim": "He is Dutch.", "label": "SUPPORTS"}
    two = {"evidence_sentence": "He is Dutch.", "claim": "He is French.", "gold_label": "REFUTES"}
    written(tmp_path, f"{symmetric}_dev.jsonl", json.dumps(one))
    written(tmp_path, f"{symmetric}_test.jsonl", json.dumps(two))
    head = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label"
    rows = [
        "t5\ttc\tOwls fly.\tHm?\tYes, they do.\tFully attributable",
        "t5\ttc\tx\tHi\tHi!\tGeneric",
    ]
    written(tmp_path, "BEGIN-dataset/topicalchat/begin_dev_tc.tsv", head, *rows)
    row = "t5\tcmu\tOwls fly.\tHm?\tThey swim.\tNot fully attributable"
    written(tmp_path, "BEGIN-dataset/cmu-dog/begin_dev_cmu.tsv", head, row)
    wice = {
        "claim": "It opened in 1900 and burnt.",
        "evidence": ["(meta data) TITLE: A hall", "(meta data) PUBLISHER: x", "It opened in 1900."],
        "label": "partially_supported",
    }
    written(tmp_path, "wice/data/entailment_retrieval/claim/test.jsonl", json.dumps(wice))
    return tmp_path


def test_claims_are_read_as_they_are_published(checkouts: Path) -> None:
    """Each with its text, and the words of it that are not supported."""
    found = [(c.context, c.answer, [c.answer[a:b] for a, b in c.spans]) for c in claims(checkouts)]
    place = "Bonn lies on the Rhine. It is old. It has a zoo."
    assert found == [
        (place, "Bonn has a zoo.", []),
        (place, "Bonn is new.", ["Bonn is new."]),
        ('A "dog runs.', "It runs.", []),
        ("A dog runs.", "It sits.", ["It sits."]),
        ("He is Dutch.", "He is Dutch.", []),
        ("He is Dutch.", "He is French.", ["He is French."]),
        ("Owls fly.", "Yes, they do.", []),
        ("Owls fly.", "They swim.", ["They swim."]),
        (
            "(meta data) TITLE: A hall\nIt opened in 1900.",
            "It opened in 1900 and burnt.",
            ["It opened in 1900 and burnt."],
        ),
    ]
    assert [c.label for c in claims(checkouts)] == [bool(spans) for _, _, spans in found]


def test_a_missing_checkout_is_named_with_its_address(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"fool-me-twice is missing: git clone https://github\.com"
    ):
        list(claims(tmp_path))
