"""Runs of InvarLock: the JSON that its `write_run` writes, one file per arm.

The keys are those of `invarlock/evaluation-run-v1` (invarlock 0.17.1, evaluation_run.schema.json).
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from evals.errors import ImportFileError
from evals.importing.case import Case, CaseFile, only_one, scored
from evals.importing.file import objects_of
from evals.importing.row import JsonObject, RowError, identity, text

KEYS = frozenset({"format", "run_id", "source", "records"})
"""Keys by which a run is known."""
_FORMAT = "invarlock/evaluation-run-v1"
_ASKED = ("input", "context", "expected")


def read(path: Path, metric: str | None, filter_: str | None, version: str | None) -> CaseFile:
    """Read one score of a run's records; a record that failed has none.

    Without `metric` the run must have one only. Evaluator and version are those that the run names
    as the score's source, else as its own; the task is the source's name. Raises `ImportFileError`.
    """
    if filter_ is not None:
        raise ImportFileError(f"{path}: InvarLock's runs have no filter")
    at, run = _run(path)
    records = run.get("records")
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise ImportFileError(f"{at}: records: wanted a list of objects (read as InvarLock's run)")
    name = only_one(path, "--metric", metric, _metrics(records))
    try:
        task, evaluator, said = _origin(run, name)
        cases = tuple(_case(record, task, name) for record in records)
    except RowError as exc:
        raise ImportFileError(f"{at}: {exc} (read as InvarLock's run)") from exc
    return CaseFile(evaluator=evaluator, version=version or said, cases=cases)


def _run(path: Path) -> tuple[str, JsonObject]:
    found = list(objects_of(path))
    if len(found) != 1 or found[0][1].get("format") != _FORMAT:
        raise ImportFileError(f"{path}: wanted one run of the format {_FORMAT}")
    return found[0]


def _origin(run: JsonObject, metric: str) -> tuple[str, str, str]:
    """Return the task, and the evaluator of the metric with its version."""
    source = _object(run, "source")
    task = text(source, "name")
    judges = run.get("score_provenance")
    judge = judges.get(metric) if isinstance(judges, dict) else None
    if isinstance(judge, dict):
        return task, text(judge, "source"), text(judge, "version")
    return task, task, text(source, "version")


def _metrics(records: Sequence[JsonObject]) -> Iterator[str]:
    for record in records:
        scores = record.get("scores")
        yield from scores if isinstance(scores, dict) else ()


def _case(record: JsonObject, task: str, metric: str) -> Case:
    error = record.get("error")
    value, reason = scored(_object(record, "scores").get(metric))
    if error is not None:
        value, reason = None, f"the record failed: {error}"
    asked = json.dumps([record.get(key) for key in _ASKED], sort_keys=True, ensure_ascii=False)
    return Case(
        task=task,
        doc=identity(record, "id"),
        digest=hashlib.sha256(asked.encode()).hexdigest(),
        metric=metric,
        value=value,
        unscored_reason=reason,
    )


def _object(row: JsonObject, key: str) -> JsonObject:
    value = row.get(key)
    if not isinstance(value, dict):
        raise RowError(f"{key}: wanted an object, got {type(value).__name__}")
    return value
