"""Convert a data set's file to a workload file."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from evals.errors import ImportFileError
from evals.importing.formats import FORMATS, detect
from evals.importing.row import JsonObject, Line, RowError


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    format: str
    lines: tuple[Line, ...]
    skipped: tuple[str, ...]
    """The problem of each row that was left out."""


class _Raw(NamedTuple):
    """An unparsed row: a line, or an item of a list."""

    at: str
    number: int
    given: object


class _Row(NamedTuple):
    at: str
    number: int
    value: JsonObject


def read(
    path: Path,
    *,
    format_: str | None = None,
    answers: Path | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
) -> Imported:
    """Read JSON lines or a JSON list, gzipped or not.

    `answers` is a second file with the same ids, whose keys are added to the rows; BFCL keeps its
    accepted calls in one. Raises `ImportFileError` with file, line and key; with `skip_bad`, only
    if no row is usable.
    """
    added = _answers(answers) if answers else {}
    lines: dict[str, Line] = {}
    skipped: list[str] = []
    name = format_
    for raw in _rows(path):
        if limit is not None and len(lines) >= limit:
            break
        try:
            row = _parse(raw)
            name = name or _detect_format(row)
            line = _check_id(_convert(row, name, added), row, lines)
        except ImportFileError as exc:
            if not skip_bad:
                raise
            skipped.append(str(exc))
        else:
            lines[line["id"]] = line
    if not lines or name is None:
        first = f"; the first fault: {skipped[0]}" if skipped else ""
        raise ImportFileError(f"{path}: holds no row that can be used{first}")
    return Imported(name, tuple(lines.values()), tuple(skipped))


def objects_of(path: Path) -> Iterator[tuple[str, JsonObject]]:
    """Yield each row of a file with its place; raises `ImportFileError`."""
    for raw in _rows(path):
        row = _parse(raw)
        yield row.at, row.value


def write(lines: tuple[Line, ...], path: Path) -> None:
    """Write a workload, one JSON object per line."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise ImportFileError(f"{path}: cannot be written: {exc.strerror}") from exc


def _check_id(line: Line, row: _Row, lines: Mapping[str, Line]) -> Line:
    if line["id"] in lines:
        raise ImportFileError(f"{row.at}: id: {line['id']!r} was used by an earlier row")
    return line


def _detect_format(row: _Row) -> str:
    found = detect(row.value)
    if found is None:
        keys = ", ".join(sorted(row.value)[:8])
        raise ImportFileError(
            f"{row.at}: no known format has the keys {keys}; name one with --format: "
            f"{', '.join(sorted(FORMATS))}"
        )
    return found


def _convert(row: _Row, name: str, added: Mapping[str, JsonObject]) -> Line:
    value = row.value
    if added:
        extra = added.get(str(value.get("id")))
        if extra is None:
            raise ImportFileError(f"{row.at}: id: {value.get('id')!r} has no answer")
        value = {**extra, **value}
    try:
        return FORMATS[name].convert(value, row.number)
    except RowError as exc:
        raise ImportFileError(f"{row.at}: {exc} (read as {name})") from exc


def _answers(path: Path) -> dict[str, JsonObject]:
    rows = map(_parse, _rows(path))
    return {str(row.value.get("id")): row.value for row in rows}


def _rows(path: Path) -> Iterator[_Raw]:
    text = _text(path)
    if text.lstrip().startswith("["):
        try:
            items = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ImportFileError(f"{path}: is not JSON: {exc}") from exc
        for number, item in enumerate(items, start=1):
            yield _Raw(f"{path}: item {number}", number, item)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _Raw(f"{path}:{number}", number, line)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ImportFileError(f"{path}: is not UTF-8 text (byte {exc.start})") from exc
    except (OSError, EOFError) as exc:
        raise ImportFileError(f"{path}: cannot be read: {exc}") from exc


def _parse(raw: _Raw) -> _Row:
    value = raw.given
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as exc:
            raise ImportFileError(f"{raw.at}: is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise ImportFileError(f"{raw.at}: wanted a JSON object, got {type(value).__name__}")
    return _Row(raw.at, raw.number, value)
