"""Samples of lm-evaluation-harness: `samples_TASK_DATE.jsonl`, written by `--log_samples`.

The keys are those of `SampleResult` in lm_eval/result_schema.py (0.4.13).
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from evals.errors import ImportFileError
from evals.importing.case import Case, CaseFile, only_one, scored
from evals.importing.file import objects_of
from evals.importing.row import JsonObject, RowError, identity, text, texts

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d{2}-\d{2}T[\d.-]+)\.jsonl")
KEYS = frozenset({"doc_id", "doc_hash", "prompt_hash", "target_hash", "metrics", "filter"})
"""Keys by which a row of samples is known."""


def read(path: Path, metric: str | None, filter_: str | None, version: str | None) -> CaseFile:
    """Read one metric of a task's samples, as one filter left the answers.

    Without `metric` or `filter_` the file must have one only. The version is taken from the
    results file that lm-eval writes beside, unless it is given. Raises `ImportFileError`.
    """
    rows = list(objects_of(path))
    if not rows:
        raise ImportFileError(f"{path}: holds no sample")
    chosen = only_one(path, "--filter", filter_, (str(row.get("filter")) for _, row in rows))
    kept = [(at, row) for at, row in rows if str(row.get("filter")) == chosen]
    name = only_one(path, "--metric", metric, _metrics(kept))
    task = _task(path)
    cases = tuple(_case(at, row, task, name) for at, row in kept)
    return CaseFile(evaluator="lm-eval", version=version or _version(path), cases=cases)


def _case(at: str, row: JsonObject, task: str, metric: str) -> Case:
    try:
        digest = "/".join(text(row, key) for key in ("doc_hash", "prompt_hash", "target_hash"))
        value, reason = scored(row.get(metric))
        return Case(
            task=task,
            doc=identity(row, "doc_id"),
            digest=digest,
            metric=f"{metric}, {text(row, 'filter')}",
            value=value,
            unscored_reason=reason,
        )
    except RowError as exc:
        raise ImportFileError(f"{at}: {exc} (read as lm-eval's samples)") from exc


def _metrics(rows: Sequence[tuple[str, JsonObject]]) -> Iterator[str]:
    for at, row in rows:
        try:
            yield from texts(row, "metrics")
        except RowError as exc:
            raise ImportFileError(f"{at}: {exc} (read as lm-eval's samples)") from exc


def _task(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ImportFileError(f"{path}: wanted lm-eval's name, samples_TASK_DATE.jsonl")
    return match["task"]


def _version(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    results = path.with_name(f"results_{match['date']}.json" if match else "results.json")
    try:
        version = json.loads(results.read_text(encoding="utf-8"))["lm_eval_version"]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ImportFileError(
            f"{results}: does not say lm_eval_version ({type(exc).__name__}); "
            "give --evaluator-version"
        ) from exc
    return str(version)
