"""Convert the collector's table of pairs to evidence, column by column."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from collector.contract import Arm, Change, SentinelAsk
from collector.data_hash import data_hash
from evals.declared_looks import DeclaredLooks, declared_looks
from evals.errors import EvidenceError
from evals.evidence import (
    BoolColumn,
    Counts,
    Divergences,
    Evidence,
    FloatColumn,
    Objects,
    PerPosition,
    SampledTokens,
    Side,
)
from evals.evidence_parts import sentinel_asks
from evals.sentinels import Preceding, Series, series_of

_SCORE = "_score_"
_RECORDED = (
    "fallback", "request_model", "response_model", "temperature", "max_tokens", "seed",
    "input_tokens", "fingerprint", "spec_lossless", "spec_method", "carries", "cohort",
    "concurrency", "launch", "top_p", "top_k", "sampler", "cached_input_tokens",
    "conversation_id", "turn", "own_history", "price",
)  # fmt: skip
"""Optional columns of a side."""
_OF_METRICS = ("unscored", "judge", "label", "fault_at", "fault_of")
"""Optional columns of a side for each metric."""
_SIDE_COLUMNS = (
    "trace_id", "start_unix_ns", "error_type", "ttft_s", "tpot_s", "e2e_s", "output_tokens",
    "counts_usable", "speculated", "spec_steps", "spec_draft_tokens", "spec_accepted_tokens",
    "spec_draft_tokens_per_pos", "spec_accepted_tokens_per_pos", "quality", "duplicates",
)  # fmt: skip


def from_table(table: pa.Table) -> Evidence:
    """Read the collector's table of pairs.

    The result, including its hash, does not depend on the order of rows or columns. Raises
    `EvidenceError` for a missing column or for two rows with the same key.
    """
    _check_columns(table)
    table = table.sort_by([("prompt_id", "ascending"), ("repeat", "ascending")]).combine_chunks()
    prompts = _numbered(table["prompt_id"])
    repeats = _counts(table["repeat"])
    twice = np.flatnonzero((np.diff(prompts) == 0) & (np.diff(repeats) == 0))
    if len(twice):
        key = (table["prompt_id"][int(twice[0])].as_py(), int(repeats[twice[0]]))
        raise EvidenceError(f"pairs: the key {key} stands in two rows; wanted one row a pair")
    metrics = sorted({n.split(_SCORE, 1)[1] for n in table.column_names if _SCORE in n})
    named = _named(table["cohort"])
    cohorts = tuple(sorted(pc.unique(named.drop_null()).to_pylist()))
    index = pc.index_in(named, pa.array(cohorts, pa.string()))
    found = Evidence(
        prompts=_clusters(table, prompts),
        cohort_of=_counts(index),
        cohorts=cohorts,
        baseline=_side(table, "baseline", metrics),
        candidate=_side(table, "candidate", metrics),
        metrics=tuple(metrics),
        data_hash=data_hash(table),
        divergences=_divergences(table),
        sampled=_sampled(table),
        workload=_workload(table),
        change=_change(table),
        looks=_looks(table),
        sentinels=_sentinels(table),
    )
    return found.with_applicability().with_launches()


def _clusters(table: pa.Table, prompts: Counts) -> Counts:
    """Return the number of each row's cluster; rows of one prompt or one session share it."""
    names = [f"{arm}_conversation_id" for arm in Arm]
    known = [table[name] for name in names if name in table.column_names]
    if not known or all(column.null_count == len(table) for column in known):
        return prompts
    sessions = pc.coalesce(*known)
    index = _counts(pc.index_in(sessions, pc.unique(sessions.drop_null())))
    rows = np.flatnonzero(index >= 0)
    vertices = int(prompts.max()) + 1, int(index.max()) + 1
    joined = coo_array(
        (np.ones(len(rows)), (prompts[rows], vertices[0] + index[rows])), shape=(sum(vertices),) * 2
    )
    _, cluster = connected_components(joined, directed=False)
    return np.asarray(cluster[prompts], dtype=np.int64)


def _named(cohort: Any) -> Any:  # Any: pyarrow is untyped
    """Return the column of cohorts; a blank name is none."""
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(cohort), ""), None, cohort)


def _change(table: pa.Table) -> Change | None:
    """Return the rollout's kind of change, if its answers record a single known one."""
    names = [f"{arm}_change" for arm in Arm if f"{arm}_change" in table.column_names]
    values = {one for name in names for one in pc.unique(table[name].drop_null()).to_pylist()}
    known = [change for change in Change if change.value in values]
    return known[0] if len(values) == len(known) == 1 else None


def _workload(table: pa.Table) -> dict[str, int]:
    """Return the planned pairs of each cohort: the maximum over all runs of the rollout."""
    planned = dict[str, int]()
    for name in (f"{arm}_workload" for arm in Arm):
        if name not in table.column_names:
            continue
        for text in pc.unique(table[name].drop_null()).to_pylist():
            for cohort, pairs in _counts_by_cohort(text):
                planned[cohort] = max(pairs, planned.get(cohort, 0))
    return planned


def _looks(table: pa.Table) -> DeclaredLooks | None:
    """Return the looks that an until-decided run declared; raises `EvidenceError`."""
    if not {f"{arm}_{name}" for arm in Arm for name in ("look", "looks")} <= {*table.column_names}:
        return None
    first, texts = (
        pc.coalesce(*(table[f"{arm}_{name}"] for arm in Arm)) for name in ("look", "looks")
    )
    if texts.null_count == len(table):
        return None
    complete = np.all([_valid(table[f"{arm}_trace_id"]) for arm in Arm], axis=0)
    cohorts = pc.fill_null(_named(table["cohort"]), "").to_pylist()
    return declared_looks(_counts(pc.fill_null(first, 0)), texts.to_pylist(), cohorts, complete)


def _sentinels(table: pa.Table) -> tuple[Series, ...]:
    """Return the answers to the sentinels, each with the requests that preceded it."""
    asks = sentinel_asks(table)
    if not asks:
        return ()
    sent = {arm: _sent(table, arm) for arm in Arm}

    def preceding(ask: SentinelAsk) -> Preceding:
        starts, prompts = sent[ask.arm]
        count = int(np.searchsorted(starts, ask.start_unix_ns))
        return Preceding(count, prompts[count - 1] if count else None)

    return series_of(asks, preceding)


def _sent(table: pa.Table, arm: Arm) -> tuple[Counts, list[str]]:
    """Return when an arm's requests were sent, in order, and their prompts."""
    starts = _counts(table[f"{arm}_start_unix_ns"])
    order = [int(row) for row in np.argsort(starts, kind="stable") if starts[row] >= 0]
    prompts = table["prompt_id"].to_pylist()
    return starts[order], [prompts[row] for row in order]


def _counts_by_cohort(text: str) -> Iterator[tuple[str, int]]:
    """Yield a sender's counts by cohort; skip everything that is no count."""
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        return
    for cohort, pairs in counts.items() if isinstance(counts, dict) else ():
        if type(pairs) is int and pairs > 0:
            yield cohort, pairs


def _divergences(table: pa.Table) -> Divergences | None:
    if "divergence_compared" not in table.column_names:
        return None
    return Divergences(
        compared=_counts(table["divergence_compared"]),
        position=_counts(table["divergence_position"]),
        gap=_floats(table["divergence_gap"]),
        allowed=_floats(table["divergence_allowed"]),
        words=np.array(table["divergence_words"].to_pylist(), dtype=np.object_),
        unknown=np.array(table["divergence_unknown"].to_pylist(), dtype=np.object_),
    )


def _sampled(table: pa.Table) -> dict[Arm, SampledTokens] | None:
    if "candidate_sampled_tokens" not in table.column_names:
        return None
    return {
        arm: SampledTokens(
            tokens=_counts(table[f"{arm}_sampled_tokens"]),
            log_e=_floats(table[f"{arm}_sampled_log_e"]),
            left_out=np.array(table[f"{arm}_sampled_left_out"].to_pylist(), dtype=np.object_),
            seeded_tokens=_counts(table[f"{arm}_sampled_seeded_tokens"]),
            seeded_log_e=_floats(table[f"{arm}_sampled_seeded_log_e"]),
        )
        for arm in Arm
    }


def _check_columns(table: pa.Table) -> None:
    wanted = ["prompt_id", "repeat", "cohort"]
    wanted += [f"{arm}_{name}" for arm in Arm for name in _SIDE_COLUMNS]
    missing = sorted(set(wanted) - set(table.column_names))
    if missing:
        raise EvidenceError(
            f"pairs: the table has no column {', '.join(missing)}; "
            "collector and evals must be of one version"
        )


def _side(table: pa.Table, arm: str, metrics: list[str]) -> Side:
    def column(name: str) -> Any:  # Any: pyarrow is untyped
        return table[f"{arm}_{name}"]

    def optional(name: str) -> FloatColumn:
        known = f"{arm}_{name}" in table.column_names
        return _floats(column(name)) if known else np.full(len(table), np.nan)

    output_tokens = _floats(column("output_tokens"))
    return Side(
        present=_valid(column("trace_id")),
        failed=_valid(column("error_type")) | (output_tokens == 0),
        start_unix_ns=_counts(column("start_unix_ns")),
        client_lag_s=optional("client_lag_s"),
        ttft_s=_floats(column("ttft_s")),
        ttfo_s=optional("ttfo_s"),
        tpot_s=_floats(column("tpot_s")),
        e2e_s=_floats(column("e2e_s")),
        output_tokens=output_tokens,
        times_flagged=_flagged(column("quality"), "times:"),
        counts_usable=_bools(column("counts_usable")),
        speculated=_bools(column("speculated")),
        steps=_counts(column("spec_steps")),
        draft_tokens=_counts(column("spec_draft_tokens")),
        accepted_tokens=_counts(column("spec_accepted_tokens")),
        draft_tokens_per_pos=_per_position(column("spec_draft_tokens_per_pos")),
        accepted_tokens_per_pos=_per_position(column("spec_accepted_tokens_per_pos")),
        duplicates=pc.sum(column("duplicates")).as_py() or 0,
        scores={
            metric: _floats(column(f"score_{metric}"))
            for metric in metrics
            if f"{arm}{_SCORE}{metric}" in table.column_names
        },
        recorded=_recorded(table, arm, metrics),
    )


_IMPOSSIBLE = ("counts:accepted_exceeds_draft", "counts:negative")
"""Flags of counts that are impossible."""


def _recorded(table: pa.Table, arm: str, metrics: list[str]) -> dict[str, Objects]:
    """Return the optional columns on how answers were requested, served and judged."""
    of_metrics = [f"{name}_{metric}" for metric in metrics for name in _OF_METRICS]
    names = [name for name in (*_RECORDED, *of_metrics) if f"{arm}_{name}" in table.column_names]
    recorded = {name: _objects(table[f"{arm}_{name}"]) for name in names}
    impossible = np.any([_flagged(table[f"{arm}_quality"], flag) for flag in _IMPOSSIBLE], axis=0)
    return recorded | {"impossible_counts": impossible.astype(np.object_)}


def _objects(column: Any) -> Objects:
    """Return a column's values; equal values are one Python object, which saves memory."""
    coded = _array(column).dictionary_encode()
    values = np.array([*coded.dictionary.to_pylist(), None], dtype=np.object_)
    return np.asarray(values[_counts(coded.indices)])


def _array(column: Any) -> Any:  # Any: pyarrow is untyped
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _numpy(column: Any) -> Any:
    return _array(column).to_numpy(zero_copy_only=False)


def _numbered(ordered: Any) -> Counts:
    """Return each row's number, with distinct values numbered in order of first appearance."""
    return np.asarray(_numpy(pc.index_in(ordered, pc.unique(ordered))), dtype=np.int64)


def _valid(column: Any) -> BoolColumn:
    return np.asarray(_numpy(pc.is_valid(column)), dtype=np.bool_)


def _bools(column: Any) -> BoolColumn:
    known = pc.fill_null(column.cast(pa.bool_()), False)  # noqa: FBT003
    return np.asarray(_numpy(known), dtype=np.bool_)


def _floats(column: Any) -> FloatColumn:
    return np.array(_numpy(column.cast(pa.float64())), dtype=np.float64)  # null becomes NaN


def _counts(column: Any) -> Counts:
    return np.asarray(_numpy(pc.fill_null(column.cast(pa.int64()), -1)), dtype=np.int64)


def _per_position(column: Any) -> PerPosition:
    lists = _array(column).cast(pa.list_(pa.int64()))
    lengths = _counts(pc.fill_null(pc.list_value_length(lists), 0))
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return PerPosition(
        row=np.repeat(np.arange(len(lengths)), lengths),
        position=np.arange(int(lengths.sum())) - first,
        tokens=_counts(lists.flatten()),
        given=_valid(lists),
    )


def _flagged(column: Any, prefix: str) -> BoolColumn:
    """Return which rows have a flag that starts with the prefix."""
    lists = _array(column).cast(pa.list_(pa.string()))
    begins = _bools(pc.starts_with(lists.flatten(), pattern=prefix))
    rows = np.zeros(len(lists), dtype=np.bool_)
    rows[_counts(pc.list_parent_indices(lists))[begins]] = True
    return rows
