"""The pairs of a rollout as columns: what the gate judges."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collector.contract import Arm
from evals.applicability import (
    GREEDY,
    NEEDS,
    OF_THE_BASELINE,
    Applicability,
    applicability,
    in_cohorts_of,
)
from evals.launches import Arm as LaunchedArm
from evals.launches import Launches, launches_of

BoolColumn = NDArray[np.bool_]
FloatColumn = NDArray[np.float64]
Counts = NDArray[np.int64]

Told = NDArray[np.object_]
"""Values of any kind, None where one is not known."""

LATENCIES = ("ttft", "ttfo", "tpot", "e2e")


class Latency(NamedTuple):
    """Seconds for both sides of each pair, and which pairs count.

    A failed side is +inf; a pair that does not count is NaN on the side that is unknown.
    """

    baseline: FloatColumn
    candidate: FloatColumn
    known: BoolColumn
    """Both sides arrived and each is measured or failed."""
    expected: BoolColumn
    """A value is owed, whether it arrived or not: only a one-token answer owes no time per output
    token."""
    flagged: BoolColumn
    """A side's times broke the contract, so that they are unknown."""


class Scores(NamedTuple):
    """Both sides' scores of one metric: a failed side is 0, an unscored or missing one NaN."""

    baseline: FloatColumn
    candidate: FloatColumn
    applicable: BoolColumn
    """Scores are owed, whether there are any or not."""

    @property
    def both(self) -> BoolColumn:
        """Say where both scores are known."""
        return self.applicable & ~np.isnan(self.baseline) & ~np.isnan(self.candidate)


class PerPosition(NamedTuple):
    """Lists of counts by draft position, flattened: one entry a generation and position."""

    row: Counts
    position: Counts
    tokens: Counts
    given: BoolColumn
    """Which generations have a list at all, an empty one included."""

    def totals(self, rows: BoolColumn) -> Counts:
        """Return the sums by position over some generations."""
        chosen = rows[self.row]
        sums = np.bincount(self.position[chosen], weights=self.tokens[chosen])
        return np.rint(sums).astype(np.int64)

    def take(self, rows: BoolColumn) -> "PerPosition":
        """Return the lists of some generations alone."""
        chosen, number = rows[self.row], np.cumsum(rows) - 1
        row = number[self.row[chosen]]
        return PerPosition(row, self.position[chosen], self.tokens[chosen], self.given[rows])


class Divergences(NamedTuple):
    """Where greedy answers of a pair first differ; made of their texts, one entry a pair."""

    compared: Counts
    """Tokens, or characters without a tokenizer, up to there; −1 where not compared."""
    position: Counts
    """−1 where the answers are equal, or not compared."""
    gap: FloatColumn
    """Of logits, under the baseline; NaN where not rescored."""
    allowed: FloatColumn
    words: NDArray[np.object_]
    """What stands there, in words; None where there is nothing to say."""
    unknown: NDArray[np.object_]
    """Why answers that may be greedy were not compared; None for all others."""

    def take(self, rows: BoolColumn) -> "Divergences":
        """Return some pairs alone."""
        return Divergences(
            self.compared[rows],
            self.position[rows],
            self.gap[rows],
            self.allowed[rows],
            self.words[rows],
            self.unknown[rows],
        )


class SampledTokens(NamedTuple):
    """What the audit of an arm's sampled answers made of each, one entry a pair."""

    tokens: Counts
    """−1 where the answer was of no use."""
    log_e: FloatColumn
    """Logarithm of the arm's e-value after this answer; NaN where it was of no use."""
    left_out: NDArray[np.object_]
    """Why it was of no use; None for all others, and where there is no answer."""

    def take(self, rows: BoolColumn) -> "SampledTokens":
        """Return some pairs alone."""
        return SampledTokens(self.tokens[rows], self.log_e[rows], self.left_out[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm's columns, one entry a pair; unknown numbers are NaN, unknown counts −1."""

    present: BoolColumn
    failed: BoolColumn
    """It ended in an error, or has no token."""
    start_unix_ns: Counts
    client_lag_s: FloatColumn
    """How late the load generator sent it; NaN where nobody recorded that."""
    ttft_s: FloatColumn
    ttfo_s: FloatColumn
    """Of the answer itself; the first token may be of the reasoning before it."""
    tpot_s: FloatColumn
    e2e_s: FloatColumn
    output_tokens: FloatColumn
    times_flagged: BoolColumn
    counts_usable: BoolColumn
    speculated: BoolColumn
    steps: Counts
    draft_tokens: Counts
    accepted_tokens: Counts
    draft_tokens_per_pos: PerPosition
    accepted_tokens_per_pos: PerPosition
    duplicates: int
    scores: Mapping[str, FloatColumn]
    told: Mapping[str, Told] = field(default_factory=dict)
    """What the answers say of how they were asked for, served and judged, by its name in the
    collector's table; no entry where nobody recorded it."""

    @property
    def answered(self) -> BoolColumn:
        """Say where this side arrived and did not fail."""
        return self.present & ~self.failed

    @property
    def empty(self) -> BoolColumn:
        """Say where an answer arrived that has no token: it counts as failed."""
        return np.asarray(self.present & (self.output_tokens == 0))

    @property
    def fallback(self) -> BoolColumn:
        """Say where another route answered: of this arm's own answer nothing is known."""
        said = self.told.get("fallback")
        if said is None:
            return np.zeros(len(self.present), dtype=np.bool_)
        return np.asarray(said == True, dtype=np.bool_)  # noqa: E712  # None is not known to be one

    def take(self, rows: BoolColumn) -> "Side":
        """Return some rows alone; `duplicates` stays the rollout's."""
        kept: dict[str, Any] = {}  # Any: columns of every kind
        for name in (f.name for f in fields(self)):
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                kept[name] = column[rows]
            elif isinstance(column, PerPosition):
                kept[name] = column.take(rows)
        scores = {metric: values[rows] for metric, values in self.scores.items()}
        told = {name: values[rows] for name, values in self.told.items()}
        return replace(self, scores=scores, told=told, **kept)

    def latency_s(self, metric: str) -> FloatColumn:
        """Return one of `LATENCIES`: +inf where failed, NaN where unknown, flagged or another's."""
        measured: FloatColumn = getattr(self, f"{metric}_s")
        unknown = self.times_flagged | self.fallback | ~self.present
        values = np.where(unknown, np.nan, measured)
        return np.where(self.failed, np.inf, np.where(values > 0, values, np.nan))

    def score(self, metric: str) -> FloatColumn:
        """Return a metric's scores: NaN where there is none, or another route's answer has it."""
        values = self.scores.get(metric)
        if values is None:
            return np.full(len(self.present), np.nan)
        return np.where(self.fallback, np.nan, values)

    def judged(self, metric: str) -> BoolColumn:
        """Say where an evaluator gave a score, or the reason why there is none."""
        scored = self.scores.get(metric)
        given = np.zeros(len(self.present), dtype=np.bool_) if scored is None else ~np.isnan(scored)
        reasons = self.told.get(f"unscored_{metric}")
        return given if reasons is None else given | (reasons != None)  # noqa: E711  # elementwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All pairs of a rollout, in the order of (prompt id, repeat)."""

    prompts: NDArray[np.int64]
    """Number of the prompt of each pair, ascending: repeats of one prompt are one cluster."""
    cohort_of: Counts
    """Index into `cohorts` of each pair; −1 where it has none, and is in the pool alone."""
    cohorts: tuple[str, ...]
    """The cohorts' names in alphabetical order."""
    baseline: Side
    candidate: Side
    metrics: tuple[str, ...]
    """Metrics that have a score in the rollout."""
    data_hash: str
    divergences: Divergences | None = None
    """None where nobody compared the answers."""
    sampled: Mapping[Arm, SampledTokens] | None = None
    """None where nobody audited sampled answers."""
    workload: Mapping[str, int] = field(default_factory=dict)
    """Pairs that each cohort was to have, as far as the run said; empty where it did not."""
    launches: Launches | None = None
    """None where not every answer says which launch of its server gave it."""
    applies: Mapping[str, Applicability] = field(default_factory=dict)
    """By metric, to which pairs it applies, as seen in the whole rollout."""

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def complete(self) -> BoolColumn:
        """Say where both sides arrived."""
        return self.baseline.present & self.candidate.present

    @property
    def started_unix_ns(self) -> Counts:
        """Return the start of each pair's earlier side; the greatest integer for none."""
        sides, never = (self.baseline, self.candidate), np.iinfo(np.int64).max
        starts = [np.where(s.present, s.start_unix_ns, never) for s in sides]
        return np.asarray(np.min(starts, axis=0))

    def side(self, arm: Arm) -> Side:
        """Return the columns of one arm."""
        return self.baseline if arm is Arm.BASELINE else self.candidate

    def scope(self, cohort: str | None) -> BoolColumn:
        """Return the mask of a cohort; `None` is the pool of all pairs."""
        if cohort is None:
            return np.ones(len(self), dtype=np.bool_)
        if cohort not in self.cohorts:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(self.cohort_of == self.cohorts.index(cohort))

    def take(self, rows: BoolColumn) -> "Evidence":
        """Return some pairs alone, under the whole rollout's cohorts, metrics and hash."""
        if rows.all():
            return self
        return replace(
            self,
            prompts=self.prompts[rows],
            cohort_of=self.cohort_of[rows],
            baseline=self.baseline.take(rows),
            candidate=self.candidate.take(rows),
            divergences=None if self.divergences is None else self.divergences.take(rows),
            sampled=None
            if self.sampled is None
            else {arm: seen.take(rows) for arm, seen in self.sampled.items()},
            launches=None if self.launches is None else self.launches.take(rows),
            applies={metric: found.take(rows) for metric, found in self.applies.items()},
        )

    def in_cohorts_of(self, rows: BoolColumn) -> BoolColumn:
        """Return the pairs of the cohorts, or of none, that any of the rows belongs to."""
        return in_cohorts_of(self.cohort_of, rows)

    def applicability(self, metric: str) -> Applicability:
        """Return to which pairs a scored metric applies."""
        return self.applies.get(metric) or self._applicability(metric)

    def with_launches(self) -> "Evidence":
        """Return the evidence with the launches that its answers name."""
        nobody = np.full(len(self), None, dtype=np.object_)
        baseline, candidate = (
            LaunchedArm(side.told.get("launch", nobody), side.present)
            for side in (self.baseline, self.candidate)
        )
        launches = launches_of(baseline, candidate, self.started_unix_ns)
        return replace(self, launches=launches)

    def with_applicability(self) -> "Evidence":
        """Return the evidence with what all of its pairs say of every scored metric."""
        metrics = {*self.metrics, *NEEDS, *GREEDY}
        return replace(self, applies={metric: self._applicability(metric) for metric in metrics})

    def _applicability(self, metric: str) -> Applicability:
        carries, known = self.carried(metric)
        judged = self.baseline.judged(metric) | self.candidate.judged(metric)
        return applicability(judged, carries, known, self.cohort_of)

    def carried(self, metric: str) -> tuple[BoolColumn, BoolColumn]:
        """Return which pairs carry what a metric needs, and of which that was recorded."""
        if metric in GREEDY:
            return self._greedy()
        need = NEEDS.get(metric)
        carries, known = np.zeros((2, len(self)), dtype=np.bool_)
        for side in (self.baseline, self.candidate):
            said = side.told.get("carries")
            if said is not None and need is not None:
                known |= said != None  # noqa: E711  # elementwise
                carries |= np.array([need in (names or "").split() for names in said], np.bool_)
        return carries, known

    def _greedy(self) -> tuple[BoolColumn, BoolColumn]:
        """Return which pairs were asked for at temperature 0, and of which that was recorded."""
        greedy, known = np.ones((2, len(self)), dtype=np.bool_)
        for side in (self.baseline, self.candidate):
            said = side.told.get("temperature", np.full(len(self), None))
            known &= said != None  # noqa: E711  # elementwise
            greedy &= said == 0.0
        return greedy & known, known

    def latency(self, metric: str) -> Latency:
        """Return one of `LATENCIES` for both sides."""
        baseline, candidate = self.baseline.latency_s(metric), self.candidate.latency_s(metric)
        expected = np.ones(len(self), dtype=np.bool_)
        if metric == "tpot":
            expected = _owes_tpot(self.baseline) & _owes_tpot(self.candidate)
        known = expected & ~np.isnan(baseline) & ~np.isnan(candidate)
        flagged = expected & (self.baseline.times_flagged | self.candidate.times_flagged) & ~known
        return Latency(baseline, candidate, known, expected, flagged)

    def scores(self, metric: str) -> Scores:
        """Return the scores of a metric, with 0 for a failed side where the metric applies."""
        applies = self.applicability(metric).owed
        baseline = self.baseline.score(metric)
        if (own := OF_THE_BASELINE.get(metric)) is not None:
            baseline = np.where(self.baseline.answered, own(self.candidate.score(metric)), np.nan)
        return Scores(
            np.where(applies & self.baseline.failed, 0.0, baseline),
            np.where(applies & self.candidate.failed, 0.0, self.candidate.score(metric)),
            applies,
        )


def _owes_tpot(side: Side) -> BoolColumn:
    """Say where a time per output token is defined: not with at most one output token."""
    return ~(side.output_tokens <= 1) | side.failed
