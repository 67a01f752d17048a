"""The recorded dimensions of requests, each with few values: names, or bands of a number."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evals.evidence.acceptance import rate
from evals.profiles import distributions

_NAMES = (
    "arm",
    "cohort",
    "route",
    "launch",
    "fingerprint",
    "engine_version",
    "service_name",
    "service_version",
    "response_model",
    "sampler",
    "error_type",
    "streamed",
    "fallback",
    "mirrored",
)
_NUMBERS = ("start_unix_ns", "input_tokens", "output_tokens", "concurrency", "turn", "queue_s")
FIELDS = (
    *_NAMES,
    *_NUMBERS,
    "retries",
    "finish_reasons",
    "temperature",
    "cached_input_tokens",
    "spec_accepted_tokens",
    "spec_draft_tokens",
    "quality",
    "dims",
)
"""The columns of `Client.generation_batches` that `dimensions` reads."""
_QUARTILES = (0.25, 0.5, 0.75)


class ValueBand(NamedTuple):
    """A band of numbers: its smallest and its largest recorded one."""

    low: float
    high: float


Value = str | ValueBand | None
"""A dimension's value; `None` if the request does not give one."""


class Dimension(NamedTuple):
    """One dimension: its values, and the place of each request's value among them."""

    name: str
    """A field of `Generation`, `sampling`, `acceptance`, `cached_share`, or
    `distributions.DIM` and a name."""
    values: tuple[Value, ...]
    codes: NDArray[np.int64]


def dimensions(table: pa.Table) -> Iterator[Dimension]:
    """Yield the dimensions in which the requests have at least two values.

    `table` has the columns `FIELDS`. Numbers are in four bands, cut at the quartiles of all
    requests.
    """
    for name, values in _named(table):
        coded = pc.dictionary_encode(values, null_encoding="encode").combine_chunks()
        yield from _several(name, coded.dictionary.to_pylist(), coded.indices.to_numpy())
    for name, numbers in _numbers(table).items():
        yield from _banded(name, np.array(numbers, dtype=np.float64))


def _several(name: str, values: Sequence[Value], codes: NDArray[np.int64]) -> Iterator[Dimension]:
    if len(values) > 1:
        yield Dimension(name, tuple(values), np.asarray(codes, dtype=np.int64))


def _named(table: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name in _NAMES:
        yield name, table[name].cast(pa.string())
    yield "finish_reasons", pc.binary_join(table["finish_reasons"], ", ")
    greedy = pc.equal(table["temperature"], 0.0)
    yield "sampling", pc.if_else(greedy, "greedy", "sampled")
    for name in distributions.dimensions(table):
        yield distributions.DIM + name, pa.chunked_array([distributions.dimension(table, name)])


def _numbers(table: pa.Table) -> Mapping[str, Sequence[float | None]]:
    found = {name: table[name].to_pylist() for name in (*_NUMBERS, "retries")}
    cached = table["cached_input_tokens"].to_pylist()
    found["cached_share"] = [
        part / of if part is not None and of else None
        for part, of in zip(cached, found["input_tokens"], strict=True)
    ]
    counts = (table[n].to_pylist() for n in ("spec_accepted_tokens", "spec_draft_tokens"))
    flags = table["quality"].to_pylist()
    found["acceptance"] = [
        _acceptance(accepted, drafted, broken or ())
        for accepted, drafted, broken in zip(*counts, flags, strict=True)
    ]
    return found


def _acceptance(accepted: int | None, drafted: int | None, flags: Sequence[str]) -> float | None:
    """Return one request's acceptance rate; `None` if its counts are absent or contradictory."""
    if accepted is None or drafted is None or any(flag.startswith("counts:") for flag in flags):
        return None
    return rate(accepted, drafted)


def _banded(name: str, numbers: NDArray[np.float64]) -> Iterator[Dimension]:
    given = ~np.isnan(numbers)
    if not given.any():
        return
    cuts = _cuts(numbers[given])
    places = np.where(given, np.searchsorted(cuts, numbers, side="left"), len(cuts) + 1)
    bands, codes = np.unique(places, return_inverse=True)
    values = [
        ValueBand(float(numbers[places == band].min()), float(numbers[places == band].max()))
        if band <= len(cuts)
        else None
        for band in bands
    ]
    yield from _several(name, values, codes)


def _cuts(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest number of each band but the last: the quartiles below the maximum.

    If all quartiles are the maximum, there is one cut, so that rarer numbers have a band.
    """
    largest = numbers.max()
    quartiles = np.unique(np.quantile(numbers, _QUARTILES, method="inverted_cdf"))
    cuts = quartiles[quartiles < largest]
    return cuts if len(cuts) else np.unique(numbers[numbers < largest])[-1:]
