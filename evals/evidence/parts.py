"""Record which stored pairs a table holds, in its schema's metadata, up to the verdict."""

import json
from collections.abc import Sequence
from dataclasses import replace

from collector.columns import Column, Table, joined
from collector.contract import EvidencePart, SentinelAsk, from_document, to_document
from collector.data_hash import SENTINELS, pairs_hash
from evals.errors import EvidenceError

_KEY = b"evidence"
_BOUNDS = ("arrived_after", "arrived_up_to", "scored_up_to")


def with_part(table: Table, rollout: str) -> Table:
    """Add the evidence part to a table from the collector; raises `EvidenceError`."""
    metadata = table.metadata
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
        pairs=len(table),
        data_hash=pairs_hash(table),
    )
    return _with_parts(table, [part], sentinel_asks(table))


def parts_of(table: Table, *, control: bool = False) -> tuple[EvidencePart, ...]:
    """Return the evidence parts of a table; none if it is not from a collector."""
    text = table.metadata.get(_KEY)
    if text is None:
        return ()
    parts = [from_document(EvidencePart, document) for document in json.loads(text)]
    return tuple(_as_control(part) if control else part for part in parts)


def pooled(tables: Sequence[Table]) -> Table:
    """Return the pairs of several rollouts as one table.

    Each rollout's pairs become further repeats of their prompts: pairs stay within a rollout, and
    a prompt of several rollouts is one cluster.
    """
    if len(tables) == 1:
        return tables[0]
    first, shifted = 0, []
    for table in tables:
        repeats = table["repeat"].ints() + first
        shifted.append(table.with_columns({"repeat": Column.of_numbers(repeats)}))
        first = int(repeats.max(initial=0)) + 1
    whole = joined(shifted)
    parts = [part for table in tables for part in parts_of(table)]
    return _with_parts(whole, parts, _pooled_asks(tables))


def sentinel_asks(table: Table) -> list[SentinelAsk]:
    """Return the requests of sentinels in a table's metadata."""
    text = table.metadata.get(SENTINELS.encode())
    return [] if text is None else [from_document(SentinelAsk, one) for one in json.loads(text)]


def _pooled_asks(tables: Sequence[Table]) -> list[SentinelAsk]:
    """Return the requests of several runs, whose launches differ even if no answer names them."""
    return [
        replace(ask, launch=f"run {number} {ask.launch or ''}".rstrip())
        for number, table in enumerate(tables, start=1)
        for ask in sentinel_asks(table)
    ]


def _with_parts(table: Table, parts: Sequence[EvidencePart], asks: Sequence[SentinelAsk]) -> Table:
    metadata = {_KEY: json.dumps([to_document(part) for part in parts]).encode()}
    if asks:
        metadata[SENTINELS.encode()] = json.dumps([to_document(ask) for ask in asks]).encode()
    return table.with_metadata(metadata)


def _as_control(part: EvidencePart) -> EvidencePart:
    return from_document(EvidencePart, to_document(part) | {"control": True})
