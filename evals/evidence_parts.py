"""Record which stored pairs a table holds, in its schema's metadata, up to the verdict."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from collector.contract import EvidencePart, SentinelAsk, from_document, to_document
from collector.data_hash import SENTINELS, pairs_hash
from evals.errors import EvidenceError

_KEY = b"evidence"
_BOUNDS = ("arrived_after", "arrived_up_to", "scored_up_to")


def with_part(table: pa.Table, rollout: str) -> pa.Table:
    """Add the evidence part to a table from the collector; raises `EvidenceError`."""
    metadata = table.schema.metadata or {}
    bounds = {name: int(metadata[name.encode()]) for name in _BOUNDS if name.encode() in metadata}
    if len(bounds) < len(_BOUNDS):
        raise EvidenceError(
            f"rollout {rollout}: the collector does not say which pairs it gave; "
            "collector and evals must be of one version"
        )
    part = EvidencePart(
        rollout=rollout,
        arrived_after=bounds["arrived_after"],
        arrived_up_to=bounds["arrived_up_to"],
        scored_up_to=bounds["scored_up_to"],
        pairs=table.num_rows,
        data_hash=pairs_hash(table),
    )
    return _with_parts(table, [part], sentinel_asks(table))


def parts_of(table: pa.Table, *, control: bool = False) -> tuple[EvidencePart, ...]:
    """Return the evidence parts of a table; none if it is not from a collector."""
    text = (table.schema.metadata or {}).get(_KEY)
    if text is None:
        return ()
    parts = [from_document(EvidencePart, document) for document in json.loads(text)]
    return tuple(_as_control(part) if control else part for part in parts)


def pooled(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the pairs of several rollouts as one table.

    Each rollout's pairs become further repeats of their prompts: pairs stay within a rollout, and
    a prompt of several rollouts is one cluster.
    """
    if len(tables) == 1:
        return tables[0]
    first, shifted = 0, []
    for table in tables:
        repeats = pc.add(table["repeat"], first)
        at = table.column_names.index("repeat")
        shifted.append(table.set_column(at, "repeat", repeats).replace_schema_metadata(None))
        first = (pc.max(repeats).as_py() or 0) + 1
    whole = pa.concat_tables(shifted, promote_options="default")
    parts = [part for table in tables for part in parts_of(table)]
    return _with_parts(whole, parts, _pooled_asks(tables))


def sentinel_asks(table: pa.Table) -> list[SentinelAsk]:
    """Return the requests of sentinels in a table's metadata."""
    text = (table.schema.metadata or {}).get(SENTINELS.encode())
    return [] if text is None else [from_document(SentinelAsk, one) for one in json.loads(text)]


def _pooled_asks(tables: Sequence[pa.Table]) -> list[SentinelAsk]:
    """Return the requests of several runs, whose launches differ even if no answer names them."""
    return [
        replace(ask, launch=f"run {number} {ask.launch or ''}".rstrip())
        for number, table in enumerate(tables, start=1)
        for ask in sentinel_asks(table)
    ]


def _with_parts(
    table: pa.Table, parts: Sequence[EvidencePart], asks: Sequence[SentinelAsk]
) -> pa.Table:
    metadata = {_KEY: json.dumps([to_document(part) for part in parts])}
    if asks:
        metadata[SENTINELS.encode()] = json.dumps([to_document(ask) for ask in asks])
    return table.replace_schema_metadata(metadata)


def _as_control(part: EvidencePart) -> EvidencePart:
    return from_document(EvidencePart, to_document(part) | {"control": True})
