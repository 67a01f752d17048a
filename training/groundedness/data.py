"""Labelled answers from a folder of gzip JSON lines."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRAINED = "ragtruth_qa.jsonl.gz"
COUNTED = ("halueval_qa.jsonl.gz", "halueval_general.jsonl.gz")
"""English in which words are counted; the labels are not used."""
EDITED = "summedits.jsonl.gz"
"""Edited summaries, compared in pairs; single answers are not trained on them."""
CONTRADICTION = "Conflict"
"""Part of RAGTruth's names of span types for contradictions, evident and subtle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A labelled answer on some passages; label 1 is unsupported."""

    id: str
    group: str
    """Answers of one group share passages, and must stay in one fold."""
    context: str
    answer: str
    question: str = ""
    """The question; empty if the data has none."""
    label: int
    spans: tuple[tuple[int, int], ...] = ()
    """Unsupported character ranges of the answer, if marked."""
    kinds: tuple[str, ...] = ()
    """Each span's type, by its name in the data."""
    kind: str | None = None
    """The kind of corruption; None if the answer was not corrupted."""

    @property
    def contradictions(self) -> tuple[tuple[int, int], ...]:
        """The spans that are marked as contradicting the context."""
        marked = zip(self.spans, self.kinds, strict=True) if self.kinds else ()
        return tuple(span for span, kind in marked if CONTRADICTION in kind)


def load(file: Path) -> list[Labelled]:
    """Return the labelled answers in a file; rows without a label or a context are left out."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [_labelled(row) for row in rows if row.get("label") in (0, 1) and row.get("context")]


def fingerprint(item: Labelled) -> int:
    """Return the checksum of a training answer, which the model's file keeps."""
    return zlib.crc32(f"{item.context}\n{item.answer}".encode())


def texts(file: Path) -> Iterator[str]:
    """Yield every answer, prompt and context in a file, for word counts."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield from (row[key] for key in ("context", "prompt", "answer") if row.get(key))


def _labelled(row: dict[str, Any]) -> Labelled:  # Any: a row of JSON
    marked = row.get("spans") or []
    group = row.get("source_id") or row.get("doc_key") or row["context"]
    return Labelled(
        id=row["id"],
        group=str(group),
        context=row["context"],
        answer=row["answer"],
        question=row.get("question") or "",
        label=row["label"],
        spans=tuple((span["start"], span["end"]) for span in marked),
        kinds=tuple(span["type"] for span in marked),
    )
