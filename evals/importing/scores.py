"""Import two arms' files of another evaluator's cases, as generations with scores."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from collector.client import Client
from collector.contract import Arm, Change, Generation, Score, attributes
from evals.errors import ImportFileError
from evals.importing import invarlock, lm_eval, nemo_evaluator
from evals.importing.case import Case, CaseFile
from evals.importing.file import objects_of

_Reader = Callable[[Path, str | None, str | None, str | None], CaseFile]
FORMATS: Mapping[str, tuple[frozenset[str], _Reader]] = {
    "invarlock": (invarlock.KEYS, invarlock.read),
    "lm-eval": (lm_eval.KEYS, lm_eval.read),
    "nel": (nemo_evaluator.KEYS, nemo_evaluator.read),
}
"""Each evaluator's keys, and its reader."""

_METRIC = "task_completion"
"""The gate's metric of a done task; the score's label has the case's metric."""
_Key = tuple[str, str, int]
"""Task, id of the case, and repeat."""


class ImportChoice(NamedTuple):
    """The fields to read from the files."""

    format: str | None = None
    metric: str | None = None
    filter: str | None = None
    version: str | None = None


class Arms(NamedTuple):
    """Both arms' cases."""

    baseline: CaseFile
    candidate: CaseFile
    paired: int
    """Cases that both have."""


def read(baseline: Path, candidate: Path, choice: ImportChoice) -> Arms:
    """Read both arms' files; raises `ImportFileError` if they cannot be compared.

    They can if one evaluator of one version judged both by one metric, and each case that both
    have is the same: equal hashes of document, prompt and target.
    """
    files = []
    for path in (baseline, candidate):
        _, reader = FORMATS[choice.format or _detected(path)]
        files.append(reader(path, choice.metric, choice.filter, choice.version))
    ours, theirs = (_by_key(path, f) for path, f in zip((baseline, candidate), files, strict=True))
    for what in ("evaluator", "version"):
        one, other = (getattr(file, what) for file in files)
        if one != other:
            raise ImportFileError(f"{candidate}: {what} {other}, but {baseline} has {one}")
    _check_alike(candidate, ours, theirs)
    return Arms(files[0], files[1], len(ours.keys() & theirs.keys()))


def store(
    client: Client, rollout: str, arms: Arms, *, change: Change | None, now_unix_ns: int
) -> None:
    """Store each case as a generation of its arm, and its score.

    The evaluators record no time at which an answer began or ended: a generation's start is that
    of the import, in the file's order, and it lasts no time, so that no time is known of it.
    """
    resource = {} if change is None else {attributes.DRAFTGATE_CHANGE: change.value}
    both = zip((Arm.BASELINE, Arm.CANDIDATE), (arms.baseline, arms.candidate), strict=True)
    for arm, file in both:
        client.post_generations(_generations(rollout, arm, file, now_unix_ns), resource)
        client.post_scores(_scores(rollout, arm, file))


def _check_alike(path: Path, ours: Mapping[_Key, Case], theirs: Mapping[_Key, Case]) -> None:
    both = ours.keys() & theirs.keys()
    if not both:
        raise ImportFileError(f"{path}: has no case of the other file")
    metrics = {(ours[key].metric, theirs[key].metric) for key in both}
    if other := [names for names in metrics if len(set(names)) > 1]:
        raise ImportFileError(f"{path}: metric {other[0][1]}, but the other file has {other[0][0]}")
    differing = [key for key in sorted(both) if ours[key].digest != theirs[key].digest]
    if differing:
        task, doc, _ = differing[0]
        raise ImportFileError(
            f"{path}: {len(differing)} of {len(both)} cases are not those of the other file, such "
            f"as {task}/{doc}: document, prompt or target differ"
        )


def _detected(path: Path) -> str:
    for at, row in objects_of(path):
        found = [name for name, (keys, _) in FORMATS.items() if keys <= row.keys()]
        if len(found) == 1:
            return found[0]
        raise ImportFileError(f"{at}: no known evaluator; name one: --format {', '.join(FORMATS)}")
    raise ImportFileError(f"{path}: holds no case")


def _by_key(path: Path, file: CaseFile) -> dict[_Key, Case]:
    found: dict[_Key, Case] = {}
    for case in file.cases:
        key = (case.task, case.doc, case.repeat)
        if key in found:
            raise ImportFileError(f"{path}: {case.task}/{case.doc} stands twice")
        found[key] = case
    return found


def _generations(rollout: str, arm: Arm, file: CaseFile, now_unix_ns: int) -> Iterator[Generation]:
    for number, case in enumerate(file.cases):
        trace_id, span_id = _ids(rollout, arm, case)
        start = now_unix_ns + 2 * number + (arm is Arm.CANDIDATE)
        yield Generation(
            trace_id=trace_id,
            span_id=span_id,
            start_unix_ns=start,
            end_unix_ns=start,
            rollout=rollout,
            arm=arm,
            cohort=case.task,
            prompt_id=f"{case.task}/{case.doc}",
            repeat=case.repeat,
        )


def _scores(rollout: str, arm: Arm, file: CaseFile) -> Iterator[Score]:
    for case in file.cases:
        trace_id, span_id = _ids(rollout, arm, case)
        yield Score(
            trace_id=trace_id,
            span_id=span_id,
            metric=_METRIC,
            evaluator=file.evaluator,
            version=file.version,
            value=case.value,
            label=case.metric,
            unscored_reason=case.unscored_reason,
        )


def _ids(rollout: str, arm: Arm, case: Case) -> tuple[str, str]:
    """Return the same ids for the same case, so that a second import stores nothing twice."""
    named = "\0".join([rollout, arm, case.task, case.doc, str(case.repeat)])
    digest = hashlib.sha256(named.encode()).hexdigest()
    return digest[:32], digest[32:48]
