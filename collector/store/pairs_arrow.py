"""A rollout's pairs as Arrow record batches, one row per pair key, without content."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import Row, func, select

from collector.contract import LATENCIES, PairKey, to_document
from collector.data_hash import SENTINELS
from collector.store import scores, sentinels
from collector.store.engine import Store
from collector.store.evidence import pairing
from collector.store.generations_arrow import arrow_type, load
from collector.store.reader import StoreConnection
from collector.store.tables import generation as g

_ADDED = {"e2e_s": pa.float64(), "speculated": pa.bool_(), "duplicates": pa.int64()}
"""Fields of a side that are computed."""
_FIELDS = (
    "trace_id", "span_id", "start_unix_ns", "error_type", *(f"{name}_s" for name in LATENCIES),
    "input_tokens", "cached_input_tokens", "output_tokens", "fallback", "counts_usable",
    "speculated", "spec_steps", "spec_draft_tokens", "spec_accepted_tokens",
    "spec_draft_tokens_per_pos", "spec_accepted_tokens_per_pos", "quality", "client_lag_s",
    "request_model", "response_model", "temperature", "top_p", "top_k", "sampler", "max_tokens",
    "seed", "fingerprint", "spec_lossless", "spec_method", "carries", "workload", "concurrency",
    "launch", "look", "looks", "change", "conversation_id", "turn", "own_history", "price",
    "cohort", "duplicates",
)  # fmt: skip
"""Fields that a table of pairs has for each side."""
_TYPES = {name: _ADDED.get(name) or arrow_type(name) for name in _FIELDS}
COLUMNS = tuple(
    g.c[name]
    for name in (*_FIELDS, "end_unix_ns", "spec_acceptance_histogram")
    if name not in _ADDED
)
"""Columns to read for `arrays`."""
_COUNTS = (
    "spec_steps",
    "spec_draft_tokens",
    "spec_accepted_tokens",
    "spec_draft_tokens_per_pos",
    "spec_accepted_tokens_per_pos",
    "spec_acceptance_histogram",
)


_NAMES = tuple(column.name for column in pairing.columns(COLUMNS))
_NO_SIDE = (None,) * len(_NAMES)
_PAIRS = 4096


class PairBounds(NamedTuple):
    """Which of a rollout's pairs and scores to read; equal bounds give equal results."""

    arrived_after: int
    """Pairs with a generation of this id or a lower one are excluded."""
    arrived_up_to: int
    scored_up_to: int


class Stream(NamedTuple):
    """An Arrow stream: a schema and its record batches."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def bounds_now(connection: StoreConnection, arrived_after: int = 0) -> PairBounds:
    """Return the bounds that include everything stored now."""
    last = connection.scalar(select(func.max(g.c.id))) or 0
    return PairBounds(arrived_after, last, connection.reader.newest_revision())


def stream(store: Store, rollout: str, bounds: PairBounds) -> Stream:
    """Return the rollout's pairs within the bounds, ordered by prompt id and repeat.

    Columns: `prompt_id`, `repeat`, `cohort`, then for each side, prefixed `baseline_` and
    `candidate_`, its fields, `duplicates`, and for every metric judged in the rollout
    `score_{metric}`, `unscored_{metric}` (why there is no score) and `judge_{metric}` (the
    evaluator's name and version); for schema validity also `label_…`, and `fault_at_…` and
    `fault_of_…`, characters before the answer's fault and in all. A side that has not arrived is
    null throughout, except for 0 duplicates. Each batch is a separate read transaction, so that a
    slow reader does not block vacuuming. The schema's metadata contain the bounds and, if the run
    asked any, the requests of its sentinels, as JSON.
    """
    with store.read() as connection:
        metrics = scores.metrics_of(connection, rollout)
        asked = sentinels.asks(
            connection,
            rollout,
            arrived_after=bounds.arrived_after,
            arrived_up_to=bounds.arrived_up_to,
        )
    said = {name: str(number) for name, number in bounds._asdict().items()}
    if asked:
        said[SENTINELS] = json.dumps([to_document(ask) for ask in asked])
    batches = _batches(store, rollout, metrics, bounds)
    return Stream(schema(metrics).with_metadata(said), batches)


def schema(metrics: Sequence[str]) -> pa.Schema:
    """Return the columns of a table of pairs."""
    fields = [("prompt_id", pa.string()), ("repeat", pa.int64()), ("cohort", pa.string())]
    for side in ("baseline", "candidate"):
        fields += [(f"{side}_{name}", kind) for name, kind in _TYPES.items()]
        fields += [(f"{side}_{name}", kind) for name, kind in _of_scores(metrics)]
    return pa.schema(fields)


def _batches(
    store: Store, rollout: str, metrics: Sequence[str], bounds: PairBounds
) -> Iterator[pa.RecordBatch]:
    after: PairKey | None = None
    last = bounds.arrived_up_to
    while True:
        with store.read() as connection:
            with closing(pairing.read(connection, COLUMNS, rollout, after, last)) as found:
                pairs = list(islice((p for p in found if _is_within(p, bounds)), _PAIRS))
            scored = scored_of(connection, pairs, bounds.scored_up_to) if metrics else {}
        if not pairs:
            return
        yield pa.record_batch(arrays(pairs, metrics, scored), schema=schema(metrics))
        if len(pairs) < _PAIRS:
            return
        after = pairs[-1].key


def _is_within(pair: pairing.Sides, bounds: PairBounds) -> bool:
    """Return whether all of the pair's generations arrived after the lower bound."""
    first = min(*pair.baseline_ids[:1], *pair.candidate_ids[:1], math.inf)
    return first > bounds.arrived_after


def scored_of(
    connection: StoreConnection, pairs: Sequence[pairing.Sides], up_to: int | None = None
) -> Mapping[str, Mapping[int, scores.LatestScore]]:
    """Return the latest scores of both sides, by metric and generation id.

    Only posts up to the revision `up_to` count, if given.
    """
    both = (side for pair in pairs for side in (pair.baseline, pair.candidate))
    return scores.latest(connection, [side.id for side in both if side is not None], up_to)


def arrays(
    pairs: Sequence[pairing.Sides],
    metrics: Sequence[str],
    scored: Mapping[str, Mapping[int, scores.LatestScore]],
) -> list[pa.Array]:
    """Return the columns of `schema` for some pairs."""
    found = [
        pa.array([pair.key.prompt_id for pair in pairs], pa.string()),
        pa.array([pair.key.repeat for pair in pairs], pa.int64()),
        pa.array([pair.cohort for pair in pairs], pa.string()),
    ]
    for rows, duplicates in (
        ([p.baseline for p in pairs], [p.baseline_duplicates for p in pairs]),
        ([p.candidate for p in pairs], [p.candidate_duplicates for p in pairs]),
    ):
        values = _side(rows) | {"duplicates": duplicates}
        found += [pa.array(values[name], kind) for name, kind in _TYPES.items()]
        for metric in metrics:
            by_id = scored.get(metric, {})
            latest = [by_id.get(id_, scores.NO_SCORE) for id_ in values["id"]]
            found.append(pa.array([one.value for one in latest], pa.float64()))
            found.append(pa.array([one.unscored_reason for one in latest], pa.string()))
            found.append(pa.array([one.judge for one in latest], pa.string()))
            if metric == scores.WITH_FAULTS:
                found.append(pa.array([one.label for one in latest], pa.string()))
                found.append(pa.array([one.fault_at for one in latest], pa.int64()))
                found.append(pa.array([one.fault_of for one in latest], pa.int64()))
    return found


def _side(rows: Sequence[Row[Any] | None]) -> dict[str, Sequence[Any]]:  # Any: columns' own types
    """Return the side's columns by name; a missing row has None in each."""
    columns = zip(*(_NO_SIDE if row is None else row for row in rows), strict=True)
    values: dict[str, Sequence[Any]] = dict(zip(_NAMES, columns, strict=True))
    ids, starts, ends = values["trace_id"], values["start_unix_ns"], values["end_unix_ns"]
    counted = zip(values["spec_method"], *(values[name] for name in _COUNTS), strict=True)
    values["speculated"] = [
        None if id_ is None else any(value is not None for value in row)
        for id_, row in zip(ids, counted, strict=True)
    ]
    values["e2e_s"] = [
        None if start is None else (end - start) / 1e9
        for start, end in zip(starts, ends, strict=True)
    ]
    values["quality"] = [
        None if id_ is None else () if text is None else load(text)
        for id_, text in zip(ids, values["quality"], strict=True)
    ]
    for name in ("spec_draft_tokens_per_pos", "spec_accepted_tokens_per_pos"):
        values[name] = [None if text is None else load(text) for text in values[name]]
    for name in ("trace_id", "span_id"):
        values[name] = [None if id_ is None else id_.hex() for id_ in values[name]]
    return values


def _of_scores(metrics: Sequence[str]) -> Iterator[tuple[str, pa.DataType]]:
    for metric in metrics:
        yield f"score_{metric}", pa.float64()
        yield f"unscored_{metric}", pa.string()
        yield f"judge_{metric}", pa.string()
        if metric == scores.WITH_FAULTS:
            yield f"label_{metric}", pa.string()
            yield f"fault_at_{metric}", pa.int64()
            yield f"fault_of_{metric}", pa.int64()
