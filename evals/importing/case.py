"""One case that another evaluator judged, as its file records it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evals.errors import ImportFileError


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The judgement of one answer to one case of a task."""

    task: str
    doc: str
    """Id of the case within the task."""
    repeat: int = 0
    digest: str
    """Equal for both arms if both were asked the same, and judged against the same."""
    metric: str
    """The evaluator's own name of what it measured, with the filter of the answers, if any."""
    value: float | None
    """None if the evaluator gave no number, or one outside [0, 1]."""
    unscored_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """All cases of one arm's file."""

    evaluator: str
    version: str
    cases: tuple[Case, ...]


def scored(given: object) -> tuple[float | None, str | None]:
    """Return a score in [0, 1], or the reason why there is none."""
    if isinstance(given, bool | int | float):
        value = float(given)
        if 0.0 <= value <= 1.0:
            return value, None
        return None, f"{value:g} is outside [0, 1]"
    return None, f"wanted a number, got {type(given).__name__}"


def only_one(path: Path, option: str, wanted: str | None, found: Iterable[str]) -> str:
    """Return the wanted name, or the only one; raises `ImportFileError` naming the option."""
    names = sorted(set(found))
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    raise ImportFileError(f"{path}: give {option}, one of {', '.join(names) or 'none'}")
