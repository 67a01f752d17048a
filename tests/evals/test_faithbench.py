"""FaithBench's summaries become labelled answers."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from benchmarks.grounding import faithbench

LABELS = ([], [["Benign"]], [["Benign"], ["Questionable"]], [["Unwanted", "Unwanted.Intrinsic"]])


def test_a_summary_is_as_bad_as_its_worst_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Benign parts are no errors, and what nobody marked is supported."""
    samples = [
        {
            "sample_id": number,
            "source": "It rains.",
            "summary": "It pours.",
            "annotations": [{"label": label} for label in labels],
        }
        for number, labels in enumerate(LABELS)
    ]
    (tmp_path / "data_for_release").mkdir()
    (tmp_path / "data_for_release/batch_7.json").write_text(json.dumps({"samples": samples}))
    out = tmp_path / "faithbench.jsonl.gz"
    monkeypatch.setattr(sys, "argv", ["faithbench", str(tmp_path), str(out)])
    faithbench.main()
    with gzip.open(out, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    assert [row["label"] for row in rows] == [0, 0, 1, 1]
    one = {"id": "batch_7-0", "context": "It rains.", "answer": "It pours.", "label": 0}
    assert rows[0] == one


def test_a_folder_without_batches_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no empty file is left."""
    monkeypatch.setattr(sys, "argv", ["faithbench", str(tmp_path), str(tmp_path / "x.gz")])
    with pytest.raises(SystemExit, match=r"has no data_for_release/batch_\*\.json"):
        faithbench.main()
    assert not (tmp_path / "x.gz").exists()
