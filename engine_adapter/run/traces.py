"""Readers of real traffic's traces: arrival times, and token counts of prompts and answers.

The published formats: Azure's CSV (`TIMESTAMP,ContextTokens,GeneratedTokens`), Mooncake's JSON
lines (`timestamp` in milliseconds, `input_length`, `output_length`, `hash_ids`; `session_id` and
`delay`, in milliseconds since the session's previous answer), and Draftgate's JSON lines (`t` in
seconds, `input_tokens`, `output_tokens`); each may be gzipped.
"""

import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from engine_adapter.errors import WorkloadError
from engine_adapter.workload import MAX_THINK_S

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
    session: str | None = None
    delay_s: float | None = None
    """Seconds from the end of the session's previous answer."""


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


def in_sessions(trace: Sequence[Arrival]) -> list[list[int]]:
    """Return the places of each session's requests, the sessions in order of their first ones.

    Requests of one `session` belong together. Without that, a request continues the latest one
    whose full blocks it begins with, if its input is long enough to hold that one's input and
    answer, and no other request ends in the same block, as those of a common system prompt do.
    """
    sessions: dict[str | int, list[int]] = {}
    first: list[int] = []
    ends: dict[int, int | None] = {}
    for place, arrival in enumerate(trace):
        earlier = None if arrival.session is not None else _continued(trace, arrival, ends)
        first.append(place if earlier is None else first[earlier])
        key = arrival.session if arrival.session is not None else first[place]
        sessions.setdefault(key, []).append(place)
        for block in arrival.block_ids[-2:-1]:
            ends[block] = None if block in ends else place
    return list(sessions.values())


def _continued(
    trace: Sequence[Arrival], arrival: Arrival, ends: dict[int, int | None]
) -> int | None:
    """Return the place of the request that this one continues, and take it off `ends`."""
    block = next((block for block in reversed(arrival.block_ids) if block in ends), None)
    place = None if block is None else ends[block]
    if block is None or place is None:
        return None
    earlier = trace[place]
    held = (earlier.input_tokens or 0) + (earlier.output_tokens or 0)
    if (arrival.input_tokens or 0) < held:
        return None
    del ends[block]
    return place


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
        session=None if row.get("session_id") is None else str(row["session_id"]),
        delay_s=None if row.get("delay") is None else _delay_s(row["delay"]),
    )


def _delay_s(milliseconds: Any) -> float:  # Any: JSON
    delay_s = float(milliseconds) / 1e3
    if not 0 <= delay_s <= MAX_THINK_S:
        raise ValueError(f"delay: {milliseconds} ms; wanted 0 to {MAX_THINK_S:g} s")
    return delay_s


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
        raise ValueError(f"t: {at_s} is not a time; wanted seconds of 0 or more")
    return at_s


def _tokens(row: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        if row.get(name) not in (None, ""):
            tokens = int(row[name])
            if not 0 <= tokens <= _MAX_TOKENS:
                raise ValueError(f"{name}: {tokens} is no number of tokens")
            return tokens
    return None
