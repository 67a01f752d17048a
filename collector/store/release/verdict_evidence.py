"""Check of a posted verdict: its evidence must match the stored data."""

import pyarrow as pa

from collector.columns import Table
from collector.contract import EvidencePart, Verdict
from collector.data_hash import pairs_hash
from collector.errors import ConflictError
from collector.store import pairs_arrow, rollouts
from collector.store.engine import Store
from collector.store.release import watches


def require_stored(store: Store, verdict: Verdict) -> None:
    """Raise unless the verdict's rollouts, pairs and hashes match the stored data.

    `NotFoundError` for an unknown rollout, `ConflictError` for data that do not, or no longer,
    match. A verdict of `watch` must match a stored watch instead.
    """
    with store.read() as connection:
        for name in {verdict.rollout, *(part.rollout for part in verdict.evidence)}:
            rollouts.require(connection, name)
    if not verdict.evidence:
        _require_watch(store, verdict)
        return
    judged = [part for part in verdict.evidence if not part.control]
    if verdict.rollout not in {part.rollout for part in judged}:
        raise ConflictError(f"evidence: wanted pairs of {verdict.rollout!r}; none are named")
    for number, part in enumerate(verdict.evidence):
        _require_part(store, part, f"evidence[{number}]")
    held = sum(part.pairs for part in judged)
    if verdict.pairs > held:
        raise ConflictError(f"pairs: got {verdict.pairs}, but its evidence holds {held}")


def _require_part(store: Store, part: EvidencePart, at: str) -> None:
    bounds = pairs_arrow.PairBounds(part.arrived_after, part.arrived_up_to, part.scored_up_to)
    stream = pairs_arrow.stream(store, part.rollout, bounds)
    reader = pa.RecordBatchReader.from_batches(stream.schema, stream.batches)
    table = Table.read(reader)
    if len(table) != part.pairs:
        raise ConflictError(
            f"{at}.pairs: got {part.pairs}, but {len(table)} pairs of {part.rollout!r} are "
            f"stored from {part.arrived_after} up to {part.arrived_up_to}; {_AGAIN}"
        )
    found = pairs_hash(table)
    if found != part.data_hash:
        raise ConflictError(
            f"{at}.data_hash: got {part.data_hash}, but the stored pairs of {part.rollout!r} have "
            f"{found}; {_AGAIN}"
        )


_AGAIN = "judge what is stored now with `draftgate gate`"


def _require_watch(store: Store, verdict: Verdict) -> None:
    with store.read() as connection:
        stored = [one.watch for one in watches.of_rollout(connection, verdict.rollout)]
    for watch in stored:
        same = (watch.policy_hash, watch.place_hash, watch.outcome, watch.pairs)
        if same == (verdict.policy_hash, verdict.data_hash, verdict.outcome, verdict.pairs):
            return
    raise ConflictError(
        "evidence: missing; wanted the pairs that the verdict rests on, as `draftgate gate` names "
        "them, or for a verdict of `draftgate watch` the state of a stored watch"
    )
