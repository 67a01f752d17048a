"""Readers of real traffic's traces: arrival times, and token counts of prompts and answers.

The published formats: Azure's CSV (`TIMESTAMP,ContextTokens,GeneratedTokens`), Mooncake's JSON
lines (`timestamp` in milliseconds, `input_length`, `output_length`, `hash_ids`), and Draftgate's
JSON lines (`t` in seconds, `input_tokens`, `output_tokens`); each may be gzipped.
"""

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from engine_adapter.errors import WorkloadError

_WANTED = "t, input_tokens and output_tokens"
_MAX_TOKENS = 10_000_000


class Arrival(NamedTuple):
    """One request of a trace."""

    at_s: float
    """Seconds since the trace's first request."""
    input_tokens: int | None
    output_tokens: int | None
    block_ids: tuple[int, ...] = ()
    """Mooncake's `hash_ids`: equal leading blocks, of 512 tokens each, are a shared prefix."""


def read(path: Path, max_requests: int | None = None) -> tuple[Arrival, ...]:
    """Return the trace's requests in order of time.

    Raises `WorkloadError` with file, line and key.
    """
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            found = list(islice(_arrivals(path, file), max_requests))
    except (OSError, EOFError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise WorkloadError(f"{path}: cannot be read: {reason}") from exc
    except UnicodeDecodeError as exc:
        raise WorkloadError(f"{path}: is not UTF-8 text (byte {exc.start})") from exc
    if not found:
        raise WorkloadError(f"{path}: holds no request; wanted lines with {_WANTED}")
    found.sort(key=lambda arrival: arrival.at_s)
    first_s = found[0].at_s
    return tuple(arrival._replace(at_s=arrival.at_s - first_s) for arrival in found)


def _arrivals(path: Path, file: TextIO) -> Iterator[Arrival]:
    plain = path.name.removesuffix(".gz")
    rows = csv.DictReader(file) if plain.endswith(".csv") else map(_object, file)
    first = 2 if plain.endswith(".csv") else 1
    for number, row in enumerate(rows, start=first):
        if row is None:
            continue
        try:
            yield _arrival(row)
        except (ValueError, TypeError, OverflowError) as exc:
            raise WorkloadError(f"{path}:{number}: {exc}") from exc


def _object(line: str) -> Mapping[str, Any] | None:  # Any: JSON
    """Return the line's object, `None` for a blank line.

    For a line that is not an object, the key `""` holds the error that `_arrival` raises.
    """
    if not line.strip():
        return None
    try:
        document = json.loads(line)
    except ValueError as exc:
        return {"": f"is not JSON: {exc}"}
    if not isinstance(document, dict):
        return {"": f"wanted a JSON object, got {type(document).__name__}"}
    return document


def _arrival(row: Mapping[str, Any]) -> Arrival:
    if "" in row:
        raise ValueError(row[""])
    blocks = row.get("hash_ids") or ()
    return Arrival(
        at_s=_time_s(row),
        input_tokens=_tokens(row, "input_tokens", "input_length", "ContextTokens"),
        output_tokens=_tokens(row, "output_tokens", "output_length", "GeneratedTokens"),
        block_ids=tuple(int(block) for block in blocks),
    )


def _time_s(row: Mapping[str, Any]) -> float:
    if "t" in row:
        at_s = float(row["t"])
    elif "timestamp" in row:
        at_s = float(row["timestamp"]) / 1e3
    elif "TIMESTAMP" in row:
        at_s = datetime.fromisoformat(row["TIMESTAMP"]).timestamp()
    else:
        raise ValueError(f"has no time; wanted {_WANTED}")
    if not 0 <= at_s < 1e12:
        raise ValueError(f"t: {at_s} is no time; wanted seconds of 0 or more")
    return at_s


def _tokens(row: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        if row.get(name) not in (None, ""):
            tokens = int(row[name])
            if not 0 <= tokens <= _MAX_TOKENS:
                raise ValueError(f"{name}: {tokens} is no number of tokens")
            return tokens
    return None
