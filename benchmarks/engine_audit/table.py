"""The tables of docs/engine-audit.md, made of the results."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from benchmarks.engine_audit.cells import (
    DECODINGS,
    GRID,
    IN_FLIGHT,
    METHODS,
    REAL,
    RELEASES,
    TINY,
    Cell,
)
from benchmarks.engine_audit.environments import ROOT
from benchmarks.engine_audit.results import FAULTS, Result

DOCUMENT: Final = ROOT / "docs" / "engine-audit.md"
_BEGIN: Final = "<!-- made by python -m benchmarks.engine_audit: {} -->"
_END: Final = "<!-- end -->"
_QUIET: Final = re.compile("^sampled answers, pooled: quiet over (?!0 tokens)")
_POOLED: Final = re.compile("^(greedy|sampled) answers, pooled: ")
_SHORTER: Final = [
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r", an alarm at 100\)", ")"),
        (r" \(\d+\.\d%\)", ""),
        (r", such as prompt .*, gap (\S+) where (\S+) is a tie", ", such as gap \\1 (a tie: \\2)"),
        (r"(?<=tokens) of \d+ answers", ""),
        (r", where the baseline's own are quiet over .*", "; the baseline's are quiet"),
        (r"\d+ are expected not to be the likeliest, of 1,000 needed: ", "needs "),
        (r"\), and (\S+) are those that the seeds give", "), \\1 given by the seeds"),
    )
]
_CODES: Final = {words: code for words, (code, _) in FAULTS.items()}


def filled(text: str, results: Sequence[Result]) -> str:
    """Return the document's text with the tables between their marks."""
    tables = {"releases": _releases(results), "patches": _patches(results), "real": _real(results)}
    for name, lines in tables.items():
        begin = _BEGIN.format(name)
        before, _, rest = text.partition(begin)
        if not rest:
            raise ValueError(f"{DOCUMENT}: wanted the line {begin}")
        text = "\n".join([before + begin, *lines, _END + rest.partition(_END)[2]])
    return text


def _releases(results: Sequence[Result]) -> Iterator[str]:
    found = {one.cell: one for one in results}
    decodings = " | ".join(DECODINGS[name].words for name in GRID)
    yield f"| Engine, release, method | In flight | {decodings} |"
    yield f"|---|---|{'---|' * len(GRID)}"
    for engine, releases in RELEASES.items():
        for release in sorted(releases, key=_number):
            for method in METHODS[engine]:
                yield from _rows(found, engine, release, method)


def _rows(found: Mapping[Cell, Result], engine: str, release: str, method: str) -> Iterator[str]:
    for in_flight in IN_FLIGHT:
        cells = [Cell(engine, release, method, name, in_flight) for name in GRID]
        texts = [_text(cell, found.get(cell)) for cell in cells]
        if set(texts) == {"–"}:
            continue
        yield f"| {engine} {release}, `{method}` | {in_flight} | {' | '.join(texts)} |"


def _text(cell: Cell, one: Result | None) -> str:
    if one is None or one.not_run is not None:
        return "–" if cell.unavailable else "·" if one is None else f"not run: {one.not_run:.60}"
    outcome = _outcome(one)
    parts = [f"**{outcome}**" if outcome == "fail" else outcome, _rate(one), _speed(one)]
    return " ".join([*filter(None, parts), *(f"[{_CODES[name]}]" for name in one.faults)])


def _outcome(one: Result) -> str:
    """Return the lossless outcome; `quiet` for the tiny target's sampled answers without an alarm.

    Its tokens are so certain that no cell of the audit has enough uncertain ones for a pass.
    """
    is_quiet = one.outcome != "fail" and _QUIET.search(one.words or "") is not None
    return "quiet" if is_quiet and one.cell.model == TINY else str(one.outcome)


def _rate(one: Result) -> str:
    return f"{one.accepted / one.drafted:.0%}" if one.drafted and one.accepted is not None else ""


def _speed(one: Result) -> str:
    if one.speed_up is None:
        return ""
    estimate, lower, upper = one.speed_up
    return f"{estimate:.2f}× ({lower:.2f}–{upper:.2f})"


def _patches(results: Sequence[Result]) -> Iterator[str]:
    yield "| Patch | Release | Decoding | Lossless | Accepted | Answers | Finding |"
    yield "|---|---|---|---|---|---|---|"
    for one in results:
        cell = one.cell
        if cell.patch is not None and cell.model == TINY and one.not_run is None:
            yield (
                f"| `{cell.patch}` | {cell.engine} {cell.release} | "
                f"{DECODINGS[cell.decoding].words} | {_outcome(one)} | {_rate(one)} | {one.pairs} "
                f"| {_finding(one)} |"
            )


def _real(results: Sequence[Result]) -> Iterator[str]:
    yield "| Release | Patch | Decoding | Lossless | Accepted | Speed-up | Answers | Finding |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in results:
        cell = one.cell
        if cell.model == REAL and one.not_run is None:
            patch = f"`{cell.patch}`" if cell.patch else ""
            yield (
                f"| {cell.engine} {cell.release}, `{cell.method}` | {patch} | "
                f"{DECODINGS[cell.decoding].words} | {one.outcome} | {_rate(one)} | "
                f"{_speed(one)} | {one.pairs} | {_finding(one)} |"
            )


def _finding(one: Result) -> str:
    """Return the finding's words without those that the row's other cells and the page hold."""
    words = _POOLED.sub("", one.words or "").removesuffix(f": {one.outcome}")
    for pattern, instead in _SHORTER:
        words = pattern.sub(instead, words)
    return words


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
