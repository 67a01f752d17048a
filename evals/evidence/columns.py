"""The pairs of a rollout as columns, which the gate judges."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collector.contract import Arm, Change
from evals.evidence.applicability import (
    GREEDY,
    NEEDS,
    OF_THE_BASELINE,
    Applicability,
    applicability,
    in_cohorts_of,
)
from evals.evidence.declared_looks import DeclaredLooks
from evals.evidence.launches import ArmLaunches, Launches, launches_of
from evals.evidence.sentinels import SentinelSeries

BoolColumn = NDArray[np.bool_]
FloatColumn = NDArray[np.float64]
Counts = NDArray[np.int64]

Objects = NDArray[np.object_]
"""Values of any type; None if unknown."""


class Latency(NamedTuple):
    """Seconds for both sides of each pair, and masks of the pairs that count.

    A failed side is +inf, an unknown side NaN.
    """

    baseline: FloatColumn
    candidate: FloatColumn
    known: BoolColumn
    """Both sides are present, and each is measured or failed."""
    expected: BoolColumn
    """The metric is defined, whether or not it was measured; the time per output token is not
    defined for answers of at most one token."""
    flagged: BoolColumn
    """The times of a side break the contract and count as unknown."""


class Scores(NamedTuple):
    """Both sides' scores of one metric: a failed side is 0, an unscored or missing one NaN."""

    baseline: FloatColumn
    candidate: FloatColumn
    applicable: BoolColumn
    """The metric applies, whether or not there are scores."""

    @property
    def both(self) -> BoolColumn:
        """Mask of the pairs with both scores."""
        return self.applicable & ~np.isnan(self.baseline) & ~np.isnan(self.candidate)


class PerPosition(NamedTuple):
    """Lists of counts by draft position, flattened: one entry per generation and position."""

    row: Counts
    position: Counts
    tokens: Counts
    given: BoolColumn
    """Mask of the generations that have a list; it may be empty."""

    def totals(self, rows: BoolColumn) -> Counts:
        """Return the sums by position over the generations in the mask."""
        chosen = rows[self.row]
        sums = np.bincount(self.position[chosen], weights=self.tokens[chosen])
        return np.rint(sums).astype(np.int64)

    def take(self, rows: BoolColumn) -> "PerPosition":
        """Return only the lists of the generations in the mask."""
        chosen, number = rows[self.row], np.cumsum(rows) - 1
        row = number[self.row[chosen]]
        return PerPosition(row, self.position[chosen], self.tokens[chosen], self.given[rows])


class LengthBands(NamedTuple):
    """The pairs' bands of input tokens, which are cohorts besides those that requests name."""

    names: tuple[str, ...]
    """The declared bands from the shortest, and that of unknown lengths if a pair is in it."""
    of: Counts
    """Each pair's index into `names`."""

    def take(self, rows: BoolColumn) -> "LengthBands":
        """Return the bands of only these pairs, with every name."""
        return LengthBands(self.names, self.of[rows])


class Divergences(NamedTuple):
    """First divergences of pairs' greedy answers, from their texts; one entry per pair."""

    compared: Counts
    """Tokens (characters without a tokenizer) compared, up to the divergence; −1: not compared."""
    position: Counts
    """Index of the first difference; −1 if the answers are equal or not compared."""
    gap: FloatColumn
    """Gap of the logits under the baseline; NaN if not rescored."""
    allowed: FloatColumn
    """Largest gap that counts as a tie; NaN if not rescored."""
    words: NDArray[np.object_]
    """Description of the divergence, or None."""
    unknown: NDArray[np.object_]
    """Why answers that may be greedy were not compared; None for all others."""

    def take(self, rows: BoolColumn) -> "Divergences":
        """Return only these pairs."""
        return Divergences(
            self.compared[rows],
            self.position[rows],
            self.gap[rows],
            self.allowed[rows],
            self.words[rows],
            self.unknown[rows],
        )


class SampledTokens(NamedTuple):
    """The audit of an arm's sampled answers, with one entry per pair."""

    tokens: Counts
    """−1 if the answer could not be used."""
    uncertain: FloatColumn
    """How many of them are expected not to be the likeliest; NaN if it could not be used."""
    log_e: FloatColumn
    """Logarithm of the arm's e-value after this answer; NaN if it could not be used."""
    left_out: NDArray[np.object_]
    """Why the answer could not be used; None for all others, and if there is no answer."""
    seeded_tokens: Counts
    """Tokens compared with those that the seed gives; −1 if these cannot be computed."""
    seeded_log_e: FloatColumn
    """Logarithm of the e-value of that comparison; NaN if it could not be made."""
    drafted_tokens: Counts
    """Tokens compared with the draft model's distribution; −1 without that model."""
    unseeded: NDArray[np.object_]
    """Why the answer could not be compared with its seed; None for all others."""

    def take(self, rows: BoolColumn) -> "SampledTokens":
        """Return only these pairs."""
        return SampledTokens._make(column[rows] for column in self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm's columns, with one entry per pair; unknown numbers are NaN, unknown counts −1."""

    present: BoolColumn
    failed: BoolColumn
    """The request ended in an error, or the answer has no token."""
    start_unix_ns: Counts
    client_lag_s: FloatColumn
    """Delay of the load generator in sending the request; NaN if not recorded."""
    seconds: Mapping[str, FloatColumn]
    """Measured seconds of each of `LATENCIES`."""
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
    recorded: Mapping[str, Objects] = field(default_factory=dict)
    """Optional columns on the request, the serving and the judging, by their name in the
    collector's table; only those that were recorded."""

    @property
    def answered(self) -> BoolColumn:
        """Mask of the sides that are present and did not fail."""
        return self.present & ~self.failed

    @property
    def empty(self) -> BoolColumn:
        """Mask of the answers without a token; they count as failed."""
        return np.asarray(self.present & (self.output_tokens == 0))

    @property
    def fallback(self) -> BoolColumn:
        """Mask of the requests that another route answered, so that this arm has no answer."""
        values = self.recorded.get("fallback")
        if values is None:
            return np.zeros(len(self.present), dtype=np.bool_)
        return np.asarray(values == True, dtype=np.bool_)  # noqa: E712  # elementwise; None is no

    def take(self, rows: BoolColumn) -> "Side":
        """Return only these rows; `duplicates` remains that of the whole rollout."""
        kept: dict[str, Any] = {}  # Any: columns of every kind
        for name in (f.name for f in fields(self)):
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                kept[name] = column[rows]
            elif isinstance(column, PerPosition):
                kept[name] = column.take(rows)
        for name in ("seconds", "scores", "recorded"):
            kept[name] = {key: values[rows] for key, values in getattr(self, name).items()}
        return replace(self, **kept)

    def column(self, name: str) -> Objects:
        """Return one of `recorded`; None in every row if it was not recorded."""
        return self.recorded.get(name, np.full(len(self.present), None, dtype=np.object_))

    def numbers(self, name: str) -> FloatColumn:
        """Return one of `recorded` whose values are numbers; NaN if unknown."""
        return self.column(name).astype(np.float64)

    def latency_s(self, metric: str) -> FloatColumn:
        """Return one of `LATENCIES`: +inf if failed; NaN if unknown, flagged or a fallback."""
        measured = self.seconds[metric]
        unknown = self.times_flagged | self.fallback | ~self.present
        values = np.where(unknown, np.nan, measured)
        return np.where(self.failed, np.inf, np.where(values > 0, values, np.nan))

    def score(self, metric: str) -> FloatColumn:
        """Return a metric's scores; NaN if there is none, or another route answered."""
        values = self.scores.get(metric)
        if values is None:
            return np.full(len(self.present), np.nan)
        return np.where(self.fallback, np.nan, values)

    def judged(self, metric: str) -> BoolColumn:
        """Mask of the answers with a score, or a reason why there is none."""
        scored = self.scores.get(metric)
        given = np.zeros(len(self.present), dtype=np.bool_) if scored is None else ~np.isnan(scored)
        reasons = self.recorded.get(f"unscored_{metric}")
        return given if reasons is None else given | (reasons != None)  # noqa: E711  # elementwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All pairs of a rollout, in the order of (prompt id, repeat)."""

    prompts: NDArray[np.int64]
    """The number of each pair's cluster; repeats of a prompt and turns of a session share one."""
    cohort_of: Counts
    """Each pair's index into `cohorts`; −1 for a pair without a cohort."""
    cohorts: tuple[str, ...]
    """The cohorts' names in alphabetical order."""
    baseline: Side
    candidate: Side
    metrics: tuple[str, ...]
    """Metrics that have a score in the rollout."""
    data_hash: str
    divergences: Divergences | None = None
    """None if the answers were not compared."""
    sampled: Mapping[Arm, SampledTokens] | None = None
    """None if sampled answers were not audited."""
    workload: Mapping[str, int] = field(default_factory=dict)
    """Planned pairs of each cohort; empty if the run did not record them."""
    change: Change | None = None
    """The rollout's kind of change; None if it is not recorded, or answers disagree."""
    launches: Launches | None = None
    """None unless every answer names the launch of its server."""
    looks: DeclaredLooks | None = None
    """None unless the run declared looks, to end when it is decided."""
    sentinels: tuple[SentinelSeries, ...] = ()
    """Answers to the prompts that the run asked again and again; they belong to no pair."""
    applies: Mapping[str, Applicability] = field(default_factory=dict)
    """Applicability of each metric, computed over the whole rollout."""
    bands: LengthBands | None = None
    """None unless the policy declares bands of input tokens."""

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def arms(self) -> tuple[tuple[Side, str], tuple[Side, str]]:
        """Each arm's columns and name, the baseline's first."""
        return (self.baseline, "baseline"), (self.candidate, "candidate")

    @property
    def complete(self) -> BoolColumn:
        """Mask of the pairs with both sides."""
        return self.baseline.present & self.candidate.present

    @property
    def started_unix_ns(self) -> Counts:
        """Start of each pair's earlier side; the greatest integer without sides."""
        sides, never = (self.baseline, self.candidate), np.iinfo(np.int64).max
        starts = [np.where(s.present, s.start_unix_ns, never) for s in sides]
        return np.asarray(np.min(starts, axis=0))

    @property
    def own_history(self) -> BoolColumn:
        """Mask of the pairs whose prompts hold each arm's own earlier answers."""
        sides = (self.baseline.recorded, self.candidate.recorded)
        found = [side["own_history"] == True for side in sides if "own_history" in side]  # noqa: E712  # elementwise; None is no
        return np.asarray(np.any([np.zeros(len(self), dtype=np.bool_), *found], axis=0))

    @property
    def most_turns(self) -> int:
        """The most turns of a session whose turns are pairs; 1 without sessions."""
        turns = self.candidate.column("turn")[~self.own_history]
        return max((turn for turn in turns if turn is not None), default=1)

    @property
    def wants_drafts(self) -> bool:
        """Whether the candidate must speculate; true unless another kind of change is recorded."""
        return self.change is None or self.change.is_of_drafts

    @property
    def all_cohorts(self) -> tuple[str, ...]:
        """The cohorts that requests name, then the bands of input tokens."""
        return (*self.cohorts, *(() if self.bands is None else self.bands.names))

    def side(self, arm: Arm) -> Side:
        """Return the columns of one arm."""
        return self.baseline if arm is Arm.BASELINE else self.candidate

    def scope(self, cohort: str | None) -> BoolColumn:
        """Return the mask of a cohort, or of a band of input tokens; `None`: all pairs."""
        if cohort is None:
            return np.ones(len(self), dtype=np.bool_)
        if self.bands is not None and cohort in self.bands.names:
            return np.asarray(self.bands.of == self.bands.names.index(cohort))
        if cohort not in self.cohorts:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(self.cohort_of == self.cohorts.index(cohort))

    def take(self, rows: BoolColumn) -> "Evidence":
        """Return only these pairs, with the whole rollout's cohorts, metrics and hash."""
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
            looks=None if self.looks is None else self.looks.take(rows),
            applies={metric: found.take(rows) for metric, found in self.applies.items()},
            bands=None if self.bands is None else self.bands.take(rows),
        )

    def in_cohorts_of(self, rows: BoolColumn) -> BoolColumn:
        """Return all pairs of the cohorts that any of the rows belongs to; see `applicability`."""
        return in_cohorts_of(self.cohort_of, rows)

    def applicability(self, metric: str) -> Applicability:
        """Return the applicability of a scored metric."""
        return self.applies.get(metric) or self._applicability(metric)

    def with_launches(self) -> "Evidence":
        """Return the evidence with `launches` computed from its answers."""
        baseline, candidate = (
            ArmLaunches(side.column("launch"), side.present)
            for side in (self.baseline, self.candidate)
        )
        launches = launches_of(baseline, candidate, self.started_unix_ns)
        return replace(self, launches=launches)

    def with_applicability(self) -> "Evidence":
        """Return the evidence with `applies` computed from all of its pairs."""
        metrics = {*self.metrics, *NEEDS, *GREEDY}
        return replace(self, applies={metric: self._applicability(metric) for metric in metrics})

    def _applicability(self, metric: str) -> Applicability:
        carries, known = self.carried(metric)
        judged = self.baseline.judged(metric) | self.candidate.judged(metric)
        return applicability(judged, carries, known, self.cohort_of)

    def carried(self, metric: str) -> tuple[BoolColumn, BoolColumn]:
        """Return two masks: pairs with the content a metric requires, pairs where it is known."""
        if metric in GREEDY:
            return self._greedy()
        need = NEEDS.get(metric)
        carries, known = np.zeros((2, len(self)), dtype=np.bool_)
        for side in (self.baseline, self.candidate):
            values = side.recorded.get("carries")
            if values is not None and need is not None:
                known |= values != None  # noqa: E711  # elementwise
                carries |= np.array([need in (names or "").split() for names in values], np.bool_)
        return carries, known

    def _greedy(self) -> tuple[BoolColumn, BoolColumn]:
        """Return two masks: greedy pairs with equal prompts, pairs of known temperature."""
        greedy, known = np.ones((2, len(self)), dtype=np.bool_)
        for side in (self.baseline, self.candidate):
            temperature = side.column("temperature")
            known &= temperature != None  # noqa: E711  # elementwise
            greedy &= temperature == 0.0
        return greedy & known & ~self.own_history, known

    def latency(self, metric: str) -> Latency:
        """Return one of `LATENCIES` for both sides."""
        baseline, candidate = self.baseline.latency_s(metric), self.candidate.latency_s(metric)
        expected = np.ones(len(self), dtype=np.bool_)
        if metric == "tpot":
            expected = _tpot_defined(self.baseline) & _tpot_defined(self.candidate)
        known = expected & ~np.isnan(baseline) & ~np.isnan(candidate)
        flagged = expected & (self.baseline.times_flagged | self.candidate.times_flagged) & ~known
        return Latency(baseline, candidate, known, expected, flagged)

    def scores(self, metric: str) -> Scores:
        """Return the scores of a metric, with 0 for a failed side if the metric applies."""
        applies = self.applicability(metric).owed
        baseline = self.baseline.score(metric)
        if (own := OF_THE_BASELINE.get(metric)) is not None:
            baseline = np.where(self.baseline.answered, own(self.candidate.score(metric)), np.nan)
        return Scores(
            np.where(applies & self.baseline.failed, 0.0, baseline),
            np.where(applies & self.candidate.failed, 0.0, self.candidate.score(metric)),
            applies,
        )


def _tpot_defined(side: Side) -> BoolColumn:
    """Return where a time per output token is defined: more than one output token, or failed."""
    return ~(side.output_tokens <= 1) | side.failed
