"""Evidence that a policy derives: bands of input tokens, and which requests are good."""

from dataclasses import replace

import numpy as np

from collector.contract import InputBands, is_input_band
from evals.errors import EvidenceError
from evals.evidence.applicability import Applicability
from evals.evidence.columns import Counts, Evidence, LengthBands, Side
from evals.evidence.goodput import within_bounds
from evals.policy import Policy
from evals.policy.sections import Goodput


def with_derived(evidence: Evidence, policy: Policy) -> Evidence:
    """Return the evidence with what the policy declares; raises `EvidenceError`."""
    if policy.goodput is not None:
        evidence = _with_goodput(evidence, policy.goodput)
    if policy.input_tokens is not None:
        evidence = replace(evidence, bands=_bands(evidence, policy.input_tokens))
    return evidence


def _with_goodput(evidence: Evidence, bounds: Goodput) -> Evidence:
    def scored(side: Side) -> Side:
        return replace(side, scores=dict(side.scores) | {"goodput": within_bounds(side, bounds)})

    every = np.ones(len(evidence), dtype=np.bool_)
    return replace(
        evidence,
        baseline=scored(evidence.baseline),
        candidate=scored(evidence.candidate),
        applies=dict(evidence.applies) | {"goodput": Applicability(every, ~every)},
    )


def _bands(evidence: Evidence, cuts: tuple[int, ...]) -> LengthBands:
    """Return each pair's band: by the baseline's count of input tokens, else the candidate's."""
    if clash := next(filter(is_input_band, evidence.cohorts), None):
        raise EvidenceError(
            f"cohort {clash}: requests name a cohort as the policy's `cohorts.input_tokens` does; "
            "wanted another name"
        )
    declared = InputBands(cuts)
    counts = [side.numbers("input_tokens") for side in (evidence.baseline, evidence.candidate)]
    tokens = np.where(np.isnan(counts[0]), counts[1], counts[0])
    different, index = np.unique(tokens, return_inverse=True)
    named = [declared.of(None if np.isnan(one) else float(one)) for one in different]
    names = (*declared.names, *sorted({*named} - {*declared.names}))
    of: Counts = np.array([names.index(name) for name in named], dtype=np.int64)
    return LengthBands(names, of[index] if len(index) else np.zeros(0, dtype=np.int64))
