"""Results of NVIDIA NeMo Evaluator (`nel`): `results.jsonl` of a task, and its bundle beside.

The keys are those that nemo_evaluator/engine/eval_loop.py and artifacts.py write.
"""

import hashlib
import json
from pathlib import Path

from evals.errors import ImportFileError
from evals.importing.case import Case, CaseFile, scored
from evals.importing.file import objects_of
from evals.importing.row import JsonObject, RowError, identity

KEYS = frozenset({"problem_idx", "reward"})
"""Keys by which a row of results is known."""


def read(path: Path, metric: str | None, filter_: str | None, version: str | None) -> CaseFile:
    """Read the rewards of a task's results, of which `metric` is the only one.

    Task and version are those of the bundle `eval-….json` beside. Raises `ImportFileError`.
    """
    if metric not in (None, "reward") or filter_ is not None:
        raise ImportFileError(f"{path}: nel's results have the metric reward, and no filter")
    bundle = _bundle(path)
    try:
        task, sdk = str(bundle["benchmark"]["name"]), version or str(bundle["sdk_version"])
    except (KeyError, TypeError) as exc:
        raise ImportFileError(f"{path.parent}: the bundle eval-….json lacks {exc}") from exc
    cases = tuple(_case(at, row, task) for at, row in objects_of(path))
    if not cases:
        raise ImportFileError(f"{path}: holds no result")
    return CaseFile(evaluator="nemo-evaluator", version=sdk, cases=cases)


def _case(at: str, row: JsonObject, task: str) -> Case:
    try:
        doc = identity(row, "problem_idx")
    except RowError as exc:
        raise ImportFileError(f"{at}: {exc} (read as nel's results)") from exc
    value, reason = scored(row.get("reward"))
    asked = json.dumps([row.get("prompt"), row.get("expected_answer")], ensure_ascii=False)
    repeat = row.get("repeat", 0)
    if not isinstance(repeat, int) or repeat < 0:
        raise ImportFileError(f"{at}: repeat: wanted a whole number (read as nel's results)")
    return Case(
        task=task,
        doc=doc,
        repeat=repeat,
        digest=hashlib.sha256(asked.encode()).hexdigest(),
        metric="reward",
        value=value,
        unscored_reason=reason,
    )


def _bundle(path: Path) -> JsonObject:
    found = sorted(path.parent.glob("eval-*.json"))
    if len(found) != 1:
        raise ImportFileError(
            f"{path.parent}: wanted one bundle eval-….json beside {path.name}, found {len(found)}"
        )
    try:
        document = json.loads(found[0].read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise ImportFileError(f"{found[0]}: cannot be read: {exc}") from exc
    if not isinstance(document, dict):
        raise ImportFileError(f"{found[0]}: wanted an object")
    return document
