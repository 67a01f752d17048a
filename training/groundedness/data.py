"""Labelled answers from a folder of gzip JSON lines."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTRADICTION = "Conflict"
"""In RAGTruth's names of spans' types: evident and subtle ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """An answer on some passages; 1 is unsupported."""

    id: str
    group: str
    """Answers of one group share passages: never split them."""
    context: str
    answer: str
    question: str = ""
    """What was asked, where the data has it."""
    label: int
    spans: tuple[tuple[int, int], ...] = ()
    """Characters of the answer that are unsupported, where they were marked."""
    kinds: tuple[str, ...] = ()
    """Each span's type, as the data calls it."""
    kind: str | None = None
    """How the whole answer was corrupted, where it was."""

    @property
    def contradictions(self) -> tuple[tuple[int, int], ...]:
        """The spans that are marked as said otherwise in the context."""
        marked = zip(self.spans, self.kinds, strict=True) if self.kinds else ()
        return tuple(span for span, kind in marked if CONTRADICTION in kind)


def load(file: Path) -> list[Labelled]:
    """Return the labelled answers of a file; those without a label or a context are left out."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [_labelled(row) for row in rows if row.get("label") in (0, 1) and row.get("context")]


def fingerprint(item: Labelled) -> int:
    """Return what the model's file keeps of an answer that trained it."""
    return zlib.crc32(f"{item.context}\n{item.answer}".encode())


def texts(file: Path) -> Iterator[str]:
    """Yield every text of a file, answers and contexts alike, each once: for word counts."""
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
