"""The result of a cell: read from its verdict, and kept in one file of JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.engine_audit.cells import Cell

JsonObject = Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One cell's figures; those that were not measured are None."""

    cell: Cell
    not_run: str | None = None
    """Why there is no verdict."""
    outcome: str | None = None
    """Of the lossless finding: pass, fail or inconclusive."""
    words: str | None = None
    """That finding in a sentence."""
    accepted: int | None = None
    drafted: int | None = None
    speed_up: tuple[float, float, float] | None = None
    """End-to-end latency, baseline over candidate, in the geometric mean over prompts: estimate,
    lower and upper limit (95 %, one-sided each)."""
    speed_up_a_token: tuple[float, float, float] | None = None
    """The same of the time per output token."""
    faults: tuple[str, ...] = ()
    pairs: int | None = None
    seconds: float | None = None
    verified: bool | None = None
    """Whether `draftgate verify` made the verdict again from the bundle."""
    data_hash: str | None = None
    """SHA-256 of the evidence in the bundle."""


def of_verdict(
    cell: Cell, verdict: JsonObject, *, died: bool, seconds: float, verified: bool
) -> Result:
    """Return the figures of a cell's verdict."""
    findings = {(one["metric"], one["stat"]): one for one in verdict["findings"]}
    lossless = findings.get(("sampled_tokens", "e_value")) or findings.get(
        ("greedy_divergence", "hazard_ratio")
    )
    counts = [one for one in verdict["acceptance"] if one["cohort"] is None]
    drafts = next((one for one in counts if one.get("arm") == "candidate"), None)
    return Result(
        cell=cell,
        outcome=None if lossless is None else lossless["outcome"],
        words=None if lossless is None else lossless["message"],
        accepted=None if drafts is None else drafts["accepted_tokens"],
        drafted=None if drafts is None else drafts["draft_tokens"],
        speed_up=_speed_up(findings.get(("e2e", "geomean_ratio"))),
        speed_up_a_token=_speed_up(findings.get(("tpot", "geomean_ratio"))),
        faults=tuple(_faults(verdict, died=died)),
        pairs=verdict["pairs"],
        data_hash=verdict["data_hash"],
        seconds=seconds,
        verified=verified,
    )


def _speed_up(finding: JsonObject | None) -> tuple[float, float, float] | None:
    limits = [
        None if finding is None else finding.get(key) for key in ("estimate", "upper", "lower")
    ]
    if any(value is None or not value > 0 for value in limits):
        return None
    estimate, upper, lower = (round(1 / float(value), 3) for value in limits if value)
    return estimate, upper, lower


FAULTS: Final[Mapping[str, tuple[str, str | None]]] = {
    "samples another distribution": ("D", "sampled_tokens"),
    "greedy answers differ beyond ties": ("G", "greedy_divergence"),
    "requests fail": ("R", "failures"),
    "answers are broken": ("B", "format_intact"),
    "answers break their schema": ("S", "schema_validity"),
    "acceptance collapsed": ("A", None),
    "output tokens are miscounted": ("M", None),
    "the server died": ("X", None),
}
"""Faults with their letter and the metric whose finding fails; None: named otherwise."""
DIED: Final = "the server died"


def _faults(verdict: JsonObject, *, died: bool) -> Iterator[str]:
    failed = [one["metric"] for one in verdict["findings"] if one["outcome"] == "fail"]
    for words, (_, metric) in FAULTS.items():
        suspected = any(one.startswith(words) for one in verdict["suspicions"])
        if metric in failed or suspected or (died and words == DIED):
            yield words


def read(path: Path) -> list[Result]:
    """Return the results of a file; none if it does not exist."""
    if not path.exists():
        return []
    found = []
    for one in json.loads(path.read_text()):
        cell = Cell(**one.pop("cell"))
        lists = {key: tuple(value) for key, value in one.items() if isinstance(value, list)}
        found.append(Result(cell=cell, **(one | lists)))
    return found


def write(path: Path, results: Sequence[Result]) -> None:
    """Write the results, one a line, in the order of the cells' names."""
    rows = [asdict(one) | {"cell": one.cell._asdict()} for one in results]
    rows.sort(key=lambda one: Cell(**one["cell"]).name)
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in rows)
    path.write_text(f"[\n{lines}\n]\n")
