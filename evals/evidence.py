"""The pairs of a rollout as columns: what the gate judges, and its hash."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.contract import Arm
from evals.errors import EvidenceError

BoolColumn = NDArray[np.bool_]
FloatColumn = NDArray[np.float64]
Counts = NDArray[np.int64]

LATENCIES = ("ttft", "tpot", "e2e")
_SCORE = "_score_"


class Latency(NamedTuple):
    """Seconds for both sides of each pair, and which pairs count.

    A failed side is +inf; a pair that does not count is NaN on the side that is unknown.
    """

    baseline: FloatColumn
    candidate: FloatColumn
    known: BoolColumn
    """Both sides arrived and each is measured or failed."""
    expected: BoolColumn
    """Both sides arrived and owe a value: a one-token answer owes no time per output token."""
    flagged: BoolColumn
    """A side's times broke the contract, so that they are unknown."""


class Scores(NamedTuple):
    """Both sides' scores of one metric: a failed side is 0, an unscored one NaN."""

    baseline: FloatColumn
    candidate: FloatColumn
    applicable: BoolColumn
    """Both sides arrived and at least one has a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm's columns, one entry a pair; unknown numbers are NaN, unknown counts −1."""

    present: BoolColumn
    failed: BoolColumn
    ttft_s: FloatColumn
    tpot_s: FloatColumn
    e2e_s: FloatColumn
    output_tokens: FloatColumn
    times_flagged: BoolColumn
    counts_usable: BoolColumn
    speculated: BoolColumn
    steps: Counts
    draft_tokens: Counts
    accepted_tokens: Counts
    draft_tokens_per_pos: tuple[tuple[int, ...] | None, ...]
    accepted_tokens_per_pos: tuple[tuple[int, ...] | None, ...]
    duplicates: int
    scores: Mapping[str, FloatColumn]

    @property
    def answered(self) -> BoolColumn:
        """Say where this side arrived and did not fail."""
        return self.present & ~self.failed

    def latency_s(self, metric: str) -> FloatColumn:
        """Return one of `LATENCIES`: +inf where failed, NaN where unknown or flagged."""
        measured: FloatColumn = getattr(self, f"{metric}_s")
        values = np.where(self.times_flagged | ~self.present, np.nan, measured)
        return np.where(self.failed, np.inf, np.where(values > 0, values, np.nan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All pairs of a rollout, in the order of (prompt id, repeat)."""

    prompts: NDArray[np.int64]
    """Number of the prompt of each pair: repeats of one prompt share it and are one cluster."""
    cohort_of: tuple[str | None, ...]
    baseline: Side
    candidate: Side
    metrics: tuple[str, ...]
    """Metrics that have a score in the rollout."""
    data_hash: str

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def cohorts(self) -> tuple[str, ...]:
        """Name the cohorts in alphabetical order; pairs without one are in the pool alone."""
        return tuple(sorted({cohort for cohort in self.cohort_of if cohort is not None}))

    @property
    def complete(self) -> BoolColumn:
        """Say where both sides arrived."""
        return self.baseline.present & self.candidate.present

    def side(self, arm: Arm) -> Side:
        """Return the columns of one arm."""
        return self.baseline if arm is Arm.BASELINE else self.candidate

    def scope(self, cohort: str | None) -> BoolColumn:
        """Return the mask of a cohort; `None` is the pool of all pairs."""
        if cohort is None:
            return np.ones(len(self), dtype=np.bool_)
        return np.array([c == cohort for c in self.cohort_of], dtype=np.bool_)

    def latency(self, metric: str) -> Latency:
        """Return one of `LATENCIES` for both sides."""
        baseline, candidate = self.baseline.latency_s(metric), self.candidate.latency_s(metric)
        expected = self.complete
        if metric == "tpot":
            expected = expected & _owes_tpot(self.baseline) & _owes_tpot(self.candidate)
        known = expected & ~np.isnan(baseline) & ~np.isnan(candidate)
        flagged = expected & (self.baseline.times_flagged | self.candidate.times_flagged) & ~known
        return Latency(baseline, candidate, known, expected, flagged)

    def scores(self, metric: str) -> Scores:
        """Return the scores of a metric, with 0 for a failed side where the metric applies.

        It applies to a pair of which one side has a score, and to a pair of which both sides
        failed in a cohort where anything has one.
        """
        none = np.full(len(self), np.nan)
        baseline = self.baseline.scores.get(metric, none)
        candidate = self.candidate.scores.get(metric, none)
        scored = ~np.isnan(baseline) | ~np.isnan(candidate)
        both_failed = self.baseline.failed & self.candidate.failed
        applies = self.complete & (scored | (both_failed & self._in_cohort_of(scored)))
        return Scores(
            np.where(applies & self.baseline.failed, 0.0, baseline),
            np.where(applies & self.candidate.failed, 0.0, candidate),
            applies,
        )

    def _in_cohort_of(self, rows: BoolColumn) -> BoolColumn:
        cohorts = {c for c, row in zip(self.cohort_of, rows, strict=True) if row}
        return np.array([c in cohorts for c in self.cohort_of], dtype=np.bool_)


def from_table(table: pa.Table) -> Evidence:
    """Read the collector's table of pairs.

    The result, its hash included, does not depend on the order of rows or columns. Raises
    `EvidenceError` for a missing column or for two rows of one key.
    """
    _check_columns(table)
    table = table.sort_by([("prompt_id", "ascending"), ("repeat", "ascending")])
    prompt_ids: list[str] = table["prompt_id"].to_pylist()
    keys = list(zip(prompt_ids, table["repeat"].to_pylist(), strict=True))
    if len(set(keys)) != len(keys):
        twice = next(key for key, following in pairwise(keys) if key == following)
        raise EvidenceError(f"pairs: the key {twice} stands in two rows; wanted one row a pair")
    metrics = sorted({n.split(_SCORE, 1)[1] for n in table.column_names if _SCORE in n})
    numbers = {prompt: i for i, prompt in enumerate(dict.fromkeys(prompt_ids))}
    return Evidence(
        prompts=np.array([numbers[p] for p in prompt_ids], dtype=np.int64),
        cohort_of=tuple(table["cohort"].to_pylist()),
        baseline=_side(table, "baseline", metrics),
        candidate=_side(table, "candidate", metrics),
        metrics=tuple(metrics),
        data_hash=_data_hash(table),
    )


_SIDE_COLUMNS = (
    "trace_id", "error_type", "ttft_s", "tpot_s", "e2e_s", "output_tokens", "counts_usable",
    "speculated", "spec_steps", "spec_draft_tokens", "spec_accepted_tokens",
    "spec_draft_tokens_per_pos", "spec_accepted_tokens_per_pos", "quality", "duplicates",
)  # fmt: skip


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

    return Side(
        present=_valid(column("trace_id")),
        failed=_valid(column("error_type")),
        ttft_s=_floats(column("ttft_s")),
        tpot_s=_floats(column("tpot_s")),
        e2e_s=_floats(column("e2e_s")),
        output_tokens=_floats(column("output_tokens")),
        times_flagged=_flagged(column("quality"), "times:"),
        counts_usable=_bools(column("counts_usable")),
        speculated=_bools(column("speculated")),
        steps=_counts(column("spec_steps")),
        draft_tokens=_counts(column("spec_draft_tokens")),
        accepted_tokens=_counts(column("spec_accepted_tokens")),
        draft_tokens_per_pos=_lists(column("spec_draft_tokens_per_pos")),
        accepted_tokens_per_pos=_lists(column("spec_accepted_tokens_per_pos")),
        duplicates=sum(n or 0 for n in column("duplicates").to_pylist()),
        scores={
            metric: _floats(column(f"score_{metric}"))
            for metric in metrics
            if f"{arm}{_SCORE}{metric}" in table.column_names
        },
    )


def _owes_tpot(side: Side) -> BoolColumn:
    """Say where a time per output token is defined: not with at most one output token."""
    return ~(side.output_tokens <= 1) | side.failed


def _valid(column: Any) -> BoolColumn:
    return np.array([value is not None for value in column.to_pylist()], dtype=np.bool_)


def _bools(column: Any) -> BoolColumn:
    return np.array([value is True for value in column.to_pylist()], dtype=np.bool_)


def _floats(column: Any) -> FloatColumn:
    values = [np.nan if value is None else value for value in column.to_pylist()]
    return np.array(values, dtype=np.float64)


def _counts(column: Any) -> Counts:
    values = [-1 if value is None else value for value in column.to_pylist()]
    return np.array(values, dtype=np.int64)


def _lists(column: Any) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(None if value is None else tuple(value) for value in column.to_pylist())


def _flagged(column: Any, prefix: str) -> BoolColumn:
    rows = column.to_pylist()
    return np.array([any(f.startswith(prefix) for f in row or ()) for row in rows], dtype=np.bool_)


def _data_hash(table: pa.Table) -> str:
    """Hash the sorted rows column by column: names in order, values as canonical JSON."""
    digest = hashlib.sha256()
    for name in sorted(table.column_names):
        values = table[name].to_pylist()
        document = json.dumps([name, values], ensure_ascii=True, separators=(",", ":"))
        digest.update(document.encode())
        digest.update(b"\n")
    return digest.hexdigest()
