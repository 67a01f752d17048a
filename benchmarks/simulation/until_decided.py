"""Rollouts that end when they are decided, beside the fixed design under the same policy."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.simulation import laws
from benchmarks.simulation.release import synthesised
from collector.contract import Outcome
from evals.evidence.columns import Evidence
from evals.evidence.declared_looks import DeclaredLooks
from evals.gate.at_looks import findings_at, looks_taken
from evals.gate.cells import plan
from evals.gate.release import judge_cells, release_outcome
from evals.policy import Policy
from evals.until_decided import Design, chosen


class Ended(NamedTuple):
    """The end of one rollout."""

    outcome: Outcome
    pairs: int


def with_looks(evidence: Evidence, shares: Sequence[float]) -> Evidence:
    """Return the evidence with looks at these shares of each cohort, all of them complete."""
    first, pairs = np.zeros(len(evidence), dtype=np.int64), {}
    for cohort in evidence.cohorts:
        rows = np.flatnonzero(evidence.scope(cohort))
        pairs[cohort] = tuple(round(share * len(rows)) for share in shares)
        first[rows] = 1 + np.searchsorted(pairs[cohort], np.arange(len(rows)), side="right")
    taken = dict.fromkeys(pairs, len(shares))
    workload = {cohort: sizes[-1] for cohort, sizes in pairs.items()}
    return replace(evidence, looks=DeclaredLooks(first, pairs, taken), workload=workload)


def until_decided(evidence: Evidence, policy: Policy) -> Ended:
    """Give pairs to the cohorts as a run does, and return its end.

    Every look is judged once, beforehand; what a run has not reached yet is hidden from it.
    """
    looks = evidence.looks
    assert looks is not None
    cells = plan(evidence, policy)
    every = looks_taken(cells, evidence, policy)
    taken = dict.fromkeys(looks.pairs, 0)
    while True:
        seen = [
            [look for look in of if look.number <= _reached(cell.cohort, taken)]
            for cell, of in zip(cells, every, strict=True)
        ]
        found = chosen(findings_at(cells, seen, evidence, policy), taken, Design(looks.count))
        if not found.cohorts:
            pairs = sum(looks.pairs[c][n - 1] for c, n in taken.items() if n)
            return Ended(found.outcome, pairs)
        taken |= found.cohorts


def _reached(cohort: str | None, taken: dict[str, int]) -> int:
    return min(taken.values()) if cohort is None else taken[cohort]


def at_the_end(evidence: Evidence, policy: Policy) -> Outcome:
    """Judge all pairs once: the fixed design."""
    return release_outcome(judge_cells(replace(evidence, looks=None), policy))


class Law(NamedTuple):
    """The truth of a simulated rollout."""

    words: str
    worse: float = 0.0
    """Difference of the first cohort's completed tasks."""
    slower: float = 1.0
    """Ratio of the candidate's times."""
    everywhere: bool = False
    """Whether every cohort completes fewer tasks."""


def drawn(law: Law, rng: np.random.Generator, a_cohort: int) -> Evidence:
    """Return the pairs of one rollout."""
    evidence = synthesised(rng, a_cohort, worse=law.worse)
    if law.everywhere:
        done = laws.task_pairs(rng, len(evidence), law.worse)
        candidate, baseline = (
            replace(side, scores={**side.scores, "task_completion": of_arm.astype(np.float64)})
            for side, of_arm in zip((evidence.candidate, evidence.baseline), done, strict=True)
        )
        evidence = replace(evidence, baseline=baseline, candidate=candidate)
    if law.slower != 1:
        seconds = evidence.candidate.seconds
        slow = replace(
            evidence.candidate, seconds={**seconds, "ttft": seconds["ttft"] * law.slower}
        )
        evidence = replace(evidence, candidate=slow)
    return evidence
