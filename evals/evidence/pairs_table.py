"""Convert the collector's table of pairs to evidence, column by column."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from collector.columns import Coded, Column, Table, concat
from collector.contract import LATENCIES, Arm, Change, SentinelAsk
from collector.data_hash import by_key, data_hash
from evals.errors import EvidenceError
from evals.evidence.columns import (
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
from evals.evidence.declared_looks import DeclaredLooks, declared_looks
from evals.evidence.parts import sentinel_asks
from evals.evidence.sentinels import Preceding, SentinelSeries, series_of

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


def from_table(table: Table) -> Evidence:
    """Read the collector's table of pairs.

    The result, including its hash, does not depend on the order of rows or columns. Raises
    `EvidenceError` for a missing column or for two rows with the same key.
    """
    _check_columns(table)
    table, coded = by_key(table)
    ids, prompts = coded
    repeats = table["repeat"].ints()
    twice = np.flatnonzero((np.diff(prompts) == 0) & (np.diff(repeats) == 0))
    if len(twice):
        key = (ids[prompts[twice[0]]], int(repeats[twice[0]]))
        raise EvidenceError(f"pairs: the key {key} stands in two rows; wanted one row a pair")
    metrics = sorted({n.split(_SCORE, 1)[1] for n in table.columns if _SCORE in n})
    cohorts, cohort_of = _named(table["cohort"])
    found = Evidence(
        prompts=_clusters(table, prompts),
        cohort_of=cohort_of,
        cohorts=cohorts,
        baseline=_side(table, "baseline", metrics),
        candidate=_side(table, "candidate", metrics),
        metrics=tuple(metrics),
        data_hash=data_hash(table),
        divergences=_divergences(table),
        sampled=_sampled(table),
        workload=_workload(table),
        change=_change(table),
        looks=_looks(table, cohorts, cohort_of),
        sentinels=_sentinels(table, coded),
    )
    return found.with_applicability().with_launches()


def _clusters(table: Table, prompts: Counts) -> Counts:
    """Return the number of each row's cluster; rows of one prompt or one session share it."""
    names = [f"{arm}_conversation_id" for arm in Arm]
    known = [table[name] for name in names if name in table.columns]
    if all(column.is_empty for column in known):
        return prompts
    index = _first_known(known).coded().codes
    rows = np.flatnonzero(index >= 0)
    vertices = int(prompts.max()) + 1, int(index.max()) + 1
    joined = coo_array(
        (np.ones(len(rows)), (prompts[rows], vertices[0] + index[rows])), shape=(sum(vertices),) * 2
    )
    _, cluster = connected_components(joined, directed=False)
    return np.asarray(cluster[prompts], dtype=np.int64)


def _named(cohort: Column) -> tuple[tuple[str, ...], Counts]:
    """Return the names of cohorts, ascending, and each row's; a blank name is none."""
    names, codes = cohort.coded()
    blank = [not name.strip() for name in names]
    new = np.where(blank, 0, np.cumsum(np.logical_not(blank))) - 1
    return tuple(name for name in names if name.strip()), np.append(new, -1)[codes]


def _first_known(columns: Sequence[Column]) -> Column:
    """Return each row's first value that is known."""
    whole, rows = concat(columns), len(columns[0])
    first = np.argmax([column.valid for column in columns], axis=0)
    return whole.take(first * rows + np.arange(rows))


def _change(table: Table) -> Change | None:
    """Return the rollout's kind of change, if its answers record a single known one."""
    names = [f"{arm}_change" for arm in Arm if f"{arm}_change" in table.columns]
    values = {one for name in names for one in table[name].coded().values}
    known = [change for change in Change if change.value in values]
    return known[0] if len(values) == len(known) == 1 else None


def _workload(table: Table) -> dict[str, int]:
    """Return the planned pairs of each cohort: the maximum over all runs of the rollout."""
    planned = dict[str, int]()
    for name in (f"{arm}_workload" for arm in Arm):
        if name not in table.columns:
            continue
        for text in table[name].coded().values:
            for cohort, pairs in _counts_by_cohort(text):
                planned[cohort] = max(pairs, planned.get(cohort, 0))
    return planned


def _looks(table: Table, cohorts: tuple[str, ...], cohort_of: Counts) -> DeclaredLooks | None:
    """Return the looks that an until-decided run declared, given the rows' cohorts.

    Raises `EvidenceError`.
    """
    if not {f"{arm}_{name}" for arm in Arm for name in ("look", "looks")} <= {*table.columns}:
        return None
    first, texts = (
        _first_known([table[f"{arm}_{name}"] for arm in Arm]) for name in ("look", "looks")
    )
    if texts.is_empty:
        return None
    complete = np.all([table[f"{arm}_trace_id"].valid for arm in Arm], axis=0)
    named = [(*cohorts, "")[code] for code in cohort_of]
    return declared_looks(first.ints(missing=0), texts.to_list(), named, complete)


def _sentinels(table: Table, prompts: Coded) -> tuple[SentinelSeries, ...]:
    """Return the answers to the sentinels, each with the requests that preceded it."""
    asks = sentinel_asks(table)
    if not asks:
        return ()
    sent = {arm: _sent(table[f"{arm}_start_unix_ns"].ints(), prompts.codes) for arm in Arm}

    def preceding(ask: SentinelAsk) -> Preceding:
        starts, codes = sent[ask.arm]
        count = int(np.searchsorted(starts, ask.start_unix_ns))
        return Preceding(count, prompts.values[codes[count - 1]] if count else None)

    return series_of(asks, preceding)


def _sent(starts: Counts, prompts: Counts) -> tuple[Counts, Counts]:
    """Return when an arm's requests were sent, in order, and their prompts."""
    order = np.argsort(starts, kind="stable")
    order = order[starts[order] >= 0]
    return starts[order], prompts[order]


def _counts_by_cohort(text: str) -> Iterator[tuple[str, int]]:
    """Yield a sender's counts by cohort; skip everything that is no count."""
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        return
    for cohort, pairs in counts.items() if isinstance(counts, dict) else ():
        if type(pairs) is int and pairs > 0:
            yield cohort, pairs


def _divergences(table: Table) -> Divergences | None:
    if "divergence_compared" not in table.columns:
        return None
    return Divergences(
        compared=table["divergence_compared"].ints(),
        position=table["divergence_position"].ints(),
        gap=table["divergence_gap"].floats(),
        allowed=table["divergence_allowed"].floats(),
        words=_objects(table["divergence_words"]),
        unknown=_objects(table["divergence_unknown"]),
    )


def _sampled(table: Table) -> dict[Arm, SampledTokens] | None:
    if "candidate_sampled_tokens" not in table.columns:
        return None
    return {
        arm: SampledTokens(
            tokens=table[f"{arm}_sampled_tokens"].ints(),
            uncertain=table[f"{arm}_sampled_uncertain"].floats(),
            log_e=table[f"{arm}_sampled_log_e"].floats(),
            left_out=_objects(table[f"{arm}_sampled_left_out"]),
            seeded_tokens=table[f"{arm}_sampled_seeded_tokens"].ints(),
            seeded_log_e=table[f"{arm}_sampled_seeded_log_e"].floats(),
            drafted_tokens=table[f"{arm}_sampled_drafted_tokens"].ints(),
            unseeded=_objects(table[f"{arm}_sampled_unseeded"]),
        )
        for arm in Arm
    }


def _check_columns(table: Table) -> None:
    wanted = ["prompt_id", "repeat", "cohort"]
    wanted += [f"{arm}_{name}" for arm in Arm for name in _SIDE_COLUMNS]
    missing = sorted(set(wanted) - set(table.columns))
    if missing:
        raise EvidenceError(
            f"pairs: the table has no column {', '.join(missing)}; "
            "collector and evals must be of one version"
        )


def _side(table: Table, arm: str, metrics: list[str]) -> Side:
    def column(name: str) -> Column:
        return table[f"{arm}_{name}"]

    def optional(name: str) -> FloatColumn:
        known = f"{arm}_{name}" in table.columns
        return column(name).floats() if known else np.full(len(table), np.nan)

    output_tokens = column("output_tokens").floats()
    return Side(
        present=column("trace_id").valid,
        failed=column("error_type").valid | (output_tokens == 0),
        start_unix_ns=column("start_unix_ns").ints(),
        client_lag_s=optional("client_lag_s"),
        seconds={metric: optional(f"{metric}_s") for metric in LATENCIES},
        output_tokens=output_tokens,
        times_flagged=_flagged(column("quality"), "times:"),
        counts_usable=column("counts_usable").bools(),
        speculated=column("speculated").bools(),
        steps=column("spec_steps").ints(),
        draft_tokens=column("spec_draft_tokens").ints(),
        accepted_tokens=column("spec_accepted_tokens").ints(),
        draft_tokens_per_pos=_per_position(column("spec_draft_tokens_per_pos")),
        accepted_tokens_per_pos=_per_position(column("spec_accepted_tokens_per_pos")),
        duplicates=int(column("duplicates").ints(missing=0).sum()),
        scores={
            metric: column(f"score_{metric}").floats()
            for metric in metrics
            if f"{arm}{_SCORE}{metric}" in table.columns
        },
        recorded=_recorded(table, arm, metrics),
    )


_IMPOSSIBLE = ("counts:accepted_exceeds_draft", "counts:negative")
"""Flags of counts that are impossible."""


def _recorded(table: Table, arm: str, metrics: list[str]) -> dict[str, Objects]:
    """Return the optional columns on how answers were requested, served and judged."""
    of_metrics = [f"{name}_{metric}" for metric in metrics for name in _OF_METRICS]
    names = [name for name in (*_RECORDED, *of_metrics) if f"{arm}_{name}" in table.columns]
    recorded = {name: _objects(table[f"{arm}_{name}"]) for name in names}
    impossible = np.any([_flagged(table[f"{arm}_quality"], flag) for flag in _IMPOSSIBLE], axis=0)
    return recorded | {"impossible_counts": impossible.astype(np.object_)}


def _objects(column: Column) -> Objects:
    """Return a column's values; equal values are one Python object, which saves memory."""
    values, codes = column.coded()
    return np.asarray(np.array([*values, None], dtype=np.object_)[codes])


def _per_position(column: Column) -> PerPosition:
    lengths, ends = column.lengths, np.cumsum(column.lengths)
    return PerPosition(
        row=np.repeat(np.arange(len(column)), lengths),
        position=np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths),
        tokens=column.items.ints(),
        given=column.valid,
    )


def _flagged(column: Column, prefix: str) -> BoolColumn:
    """Return which rows have a flag that starts with the prefix."""
    flags, codes = column.items.coded()
    begins = np.array([*(flag.startswith(prefix) for flag in flags), False])[codes]
    rows = np.zeros(len(column), dtype=np.bool_)
    rows[np.repeat(np.arange(len(column)), column.lengths)[begins]] = True
    return rows
