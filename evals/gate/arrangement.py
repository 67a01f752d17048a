"""The dependence between a cell's values: in time, by prompt, and in declared stretches."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evals.evidence.columns import BoolColumn, Counts, Evidence, FloatColumn, Side
from evals.policy import Policy
from evals.stats import dependence
from evals.stats.dependence import Effect

MANY_PROMPTS = 30
"""Prompts with an event from which on the design effect of repeats is taken from them."""
STAYS_DEAD = 0.9
"""Share of harmed requests, from the first to the end of the run, above which an arm is dead."""


@dataclass(frozen=True)
class Arrangement:
    """The times, prompts and strata of a cell's values."""

    started: Counts
    """Start of each value's request; for a pair, the earlier start."""
    prompts: Counts
    """Number of the cluster: the repeats of a prompt, the turns of a session."""
    cohorts: Counts
    """Strata whose means may differ without dependence: cohorts, and launches of timed cells."""
    declared: float
    """Successive requests that one disturbance may affect together, by the policy."""
    launches: Counts | None = None
    """Each value's group of launches, if limits are to hold over launches."""

    @cached_property
    def order(self) -> Counts:
        """Return the places of the values in order of time."""
        return np.argsort(self.started, kind="stable")

    def in_order(self, values: FloatColumn) -> FloatColumn:
        """Return values in order of time."""
        return values[self.order]

    def stretch(self, values: FloatColumn) -> float:
        """Return how many values an unseen disturbance may harm together.

        This is the declared stretch, or the average number of repeats per prompt if that is larger
        and too few prompts have a value other than 0 to show how far repeats agree.
        """
        if len(np.unique(self.prompts[values != 0])) >= MANY_PROMPTS:
            return self.declared
        repeats = np.bincount(self.prompts)
        return max(self.declared, float(repeats @ repeats) / max(len(values), 1))

    def draws(self, values: FloatColumn, harmed: BoolColumn) -> float:
        """Return the minimum number of independent draws that the values count as.

        Stretches reduce it, except for a candidate that dies and stays dead: that is no outage that
        ends, so each of its requests counts, repeats of a prompt once.
        """
        if _lasts(self.in_order(harmed.astype(np.float64))):
            return float(len(np.unique(self.prompts)))
        return len(values) / max(self.effect(values).ratio, self.stretch(values))

    def effect(self, values: FloatColumn) -> Effect:
        """Return the design effect of neighbours in time, and of repeats."""
        time = dependence.in_time(self.in_order(values), self.cohorts[self.order])
        repeats = dependence.of_clusters(values, self.prompts, self.cohorts)
        if repeats == 1 or time.batches is None:
            return dependence.both(time, repeats)
        batch = np.empty(len(values), dtype=np.int64)
        batch[self.order] = np.arange(len(values)) * time.batches // len(values)
        within = self.prompts * time.batches + batch
        return dependence.both(time, repeats, dependence.of_clusters(values, within, self.cohorts))

    def effect_of_stretches(self, values: FloatColumn) -> Effect:
        """Return the design effect, at least that of harm in declared stretches."""
        effect = self.effect(values)
        return effect._replace(ratio=max(effect.ratio, self.declared))


def _lasts(harmed: FloatColumn) -> bool:
    """Return whether nearly everything from the first harm to the end is harmed."""
    after = harmed[int(np.argmax(harmed > 0)) :]
    return bool(harmed.any()) and bool(after[-1] > 0) and float(after.mean()) >= STAYS_DEAD


def of_pairs(
    evidence: Evidence, rows: BoolColumn, policy: Policy, *, timed: bool = False
) -> Arrangement:
    """Return the arrangement of these pairs; `timed` values differ between launches."""
    return _arrangement(evidence, evidence.started_unix_ns, rows, policy, timed=timed)


def of_arm(
    evidence: Evidence, side: Side, rows: BoolColumn, policy: Policy, *, timed: bool = False
) -> Arrangement:
    """Return the arrangement of these answers of one arm."""
    return _arrangement(evidence, side.start_unix_ns, rows, policy, timed=timed)


def strata(evidence: Evidence, *, timed: bool) -> Counts:
    """Return each pair's stratum: its cohort, and for timed metrics its launch too."""
    if not timed or evidence.launches is None:
        return evidence.cohort_of
    return evidence.cohort_of + (len(evidence.cohorts) + 1) * evidence.launches.of


def launch_groups(evidence: Evidence, rows: BoolColumn, *, timed: bool) -> Counts | None:
    """Return the group of launches of each row, None if limits need not hold over launches."""
    launches = evidence.launches
    if not timed or launches is None or not launches.enough:
        return None
    return launches.of[rows]


def _arrangement(
    evidence: Evidence, starts: Counts, rows: BoolColumn, policy: Policy, *, timed: bool
) -> Arrangement:
    started, prompts = starts[rows], evidence.prompts[rows]
    return Arrangement(
        started=started,
        prompts=prompts,
        cohorts=strata(evidence, timed=timed)[rows],
        declared=stretch_of(started, policy),
        launches=launch_groups(evidence, rows, timed=timed),
    )


def stretch_of(started: Counts, policy: Policy) -> float:
    """Return the policy's stretch in requests; for a time, the most that started within it."""
    rules = policy.dependence
    if rules.stretch_s is None or len(started) == 0:
        return rules.stretch
    ordered = np.sort(started)
    ends = np.searchsorted(ordered, ordered + int(rules.stretch_s * 1e9), side="right")
    return float((ends - np.arange(len(ordered))).max())
