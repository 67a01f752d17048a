"""Write FaithBench's summaries as labelled answers, for `benchmarks/evaluators.py --data`.

    git clone https://github.com/vectara/FaithBench
    python benchmarks/grounding/faithbench.py FaithBench FOLDER/faithbench.jsonl.gz

A summary is unsupported if an annotator marked a part of it as unwanted or questionable; parts that
are marked as benign are true, though not in the source. The data are CC BY-NC-SA 4.0: they train
nothing.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_WRONG = ("Unwanted", "Questionable")


def rows(checkout: Path) -> Iterator[dict[str, Any]]:  # Any: rows of JSON
    """Yield a row for each summary."""
    for file in sorted((checkout / "data_for_release").glob("batch_*.json")):
        for sample in json.loads(file.read_text(encoding="utf-8"))["samples"]:
            labels = [label for note in sample["annotations"] for label in note["label"]]
            yield {
                "id": f"{file.stem}-{sample['sample_id']}",
                "context": sample["source"],
                "answer": sample["summary"],
                "label": int(any(label.startswith(_WRONG) for label in labels)),
            }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    found = list(rows(args.checkout))
    if not found:
        raise SystemExit(f"{args.checkout} has no data_for_release/batch_*.json")
    with gzip.open(args.out, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in found)
    wrong = sum(row["label"] for row in found)
    print(f"{len(found)} summaries, of which {wrong} are unsupported, in {args.out}")


if __name__ == "__main__":
    main()
