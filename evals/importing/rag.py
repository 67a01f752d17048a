"""Answers from passages: HaluEval and RAGTruth."""

import json

from evals.importing.row import JsonObject, Line, RowError, identity, text

COHORT = "rag"


def halueval(row: JsonObject, number: int) -> Line:
    """Convert a question with a passage; the right answer is the reference."""
    passage, question = text(row, "knowledge"), text(row, "question")
    return {
        "id": identity(row, "id") if "id" in row else f"halueval-{number}",
        "cohort": COHORT,
        "prompt": f"Answer from this passage.\n{passage}\n\nQuestion: {question}",
        "context": [passage],
        "reference": {"kind": "qa", "answers": [text(row, "right_answer")], "match": "contains"},
    }


def ragtruth(row: JsonObject) -> Line:
    """Convert a source with its prompt: passages, a text to summarize, or data to describe."""
    task = row.get("task_type")
    return {
        "id": identity(row, "source_id"),
        "cohort": COHORT,
        "prompt": text(row, "prompt"),
        "context": [_passages(row)],
        "dims": {"task": task if isinstance(task, str) else "unknown"},
    }


def _passages(row: JsonObject) -> str:
    """Return the source that must support the answer: text, an object's passages, or JSON data."""
    given = row.get("source_info")
    if isinstance(given, str):
        return given
    if not isinstance(given, dict):
        raise RowError("source_info: wanted a text or an object")
    passages = given.get("passages")
    return passages if isinstance(passages, str) else json.dumps(given, ensure_ascii=False)
