"""Check that the arms were requested, served and judged alike, so a difference is real."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import ks_2samp

from collector.contract import ArmServed, Change
from evals.evidence.columns import BoolColumn, Evidence, Objects, Side
from evals.gate.measured import MAX_UNBOUNDED_SHARE
from evals.policy import Policy
from evals.policy.rules import METRICS
from evals.stats.holm import adjusted
from evals.stats.sample_ratio import mix_p

_ASKED = {
    "request_model": "the model asked for",
    "response_model": "the model that answered",
    "temperature": "the temperature",
    "top_p": "top-p",
    "top_k": "top-k",
    "sampler": "the sampler",
    "max_tokens": "the limit of output tokens",
    "seed": "the seed",
    "input_tokens": "the number of input tokens",
    "cohort": "the cohort",
}
"""Columns that must be equal on both sides of a pair, if both have them."""
_GIVEN = ("temperature", "top_p", "top_k", "max_tokens", "seed", "cohort")
"""For these a missing value means that the request did not set it, if any answer records it."""
_NAMED = "response_model"
"""An engine gives it in every answer or in none."""
_SERVED = ("response_model", "input_tokens", "sampler")
"""Columns that a side itself produces; a candidate that truncates its context has fewer tokens, and
a server's defaults fill in what a request leaves out."""
_MIXED = ("request_model", "response_model", "temperature", "top_p", "top_k", "max_tokens")
"""Columns of which the arms of split traffic must have the same mix of values, with the number of
input tokens."""


LENGTH = "input_tokens"
_MODELS = ("request_model", "response_model")
_RENAMES = (Change.QUANTIZATION, Change.OTHER)
"""Changes under which the candidate may go by another model's name."""


class ArmDifference(NamedTuple):
    """A difference between the arms."""

    words: str
    metric: str | None = None
    """The only metric that it affects; `None`: all."""
    served: bool = False
    """Whether an arm caused it, from equal requests; harm by it is then the arm's own."""


def differences(evidence: Evidence, policy: Policy) -> Iterator[ArmDifference]:
    """Yield all differences between the arms other than the intended one."""
    if policy.paired:
        yield from inside_pairs(evidence)
    else:
        yield from _between_arms(evidence, policy)
    yield from _versions_served(evidence)
    yield from _judges(evidence, paired=policy.paired)


def inside_pairs(evidence: Evidence) -> Iterator[ArmDifference]:
    """Yield the columns in which sides of pairs differ."""
    complete = evidence.complete
    for name, words in _ASKED.items():
        if name in _MODELS and evidence.change in _RENAMES:
            continue
        sides = evidence.baseline.recorded.get(name), evidence.candidate.recorded.get(name)
        if sides[0] is None or sides[1] is None:
            continue
        baseline, candidate = sides[0][complete], sides[1][complete]
        unlike = _differing(baseline, candidate)
        if name == "input_tokens":
            unlike &= ~evidence.own_history[complete]
        if name in _GIVEN:
            unlike |= is_known(baseline) != is_known(candidate)
        if name == _NAMED:
            both = evidence.baseline.answered & evidence.candidate.answered
            unlike |= (is_known(baseline) != is_known(candidate)) & both[complete]
        if unlike.any():
            first = int(np.flatnonzero(unlike)[0])
            yield ArmDifference(
                f"{words} differs in {int(unlike.sum()):,} of {len(unlike):,} pairs, such as "
                f"{_shown(baseline[first])} for the baseline and {_shown(candidate[first])} for "
                "the candidate",
                served=name in _SERVED,
            )


def _between_arms(evidence: Evidence, policy: Policy) -> Iterator[ArmDifference]:
    names = mixed(evidence.change)
    ps: list[float | None] = [_mix_p(evidence, name) for name in names]
    yield from unlike_mixes((*names, LENGTH), [*ps, _lengths_p(evidence)], policy)


def mixed(change: Change | None) -> tuple[str, ...]:
    """Return the columns of which both arms must have the same mix under a change."""
    renamed = _MODELS if change in _RENAMES else ()
    return tuple(name for name in _MIXED if name not in renamed)


def unlike_mixes(
    names: Sequence[str], ps: Sequence[float | None], policy: Policy
) -> Iterator[ArmDifference]:
    """Yield the columns whose mix differs between the arms by these p values, Holm-corrected."""
    for name, p in zip(names, adjusted(ps), strict=True):
        if p is not None and p < policy.validity.srm_p_min:
            yield ArmDifference(
                f"{_ASKED[name]} is not distributed alike in both arms (p = {p:.1g})"
            )


def _mix_p(evidence: Evidence, name: str) -> float | None:
    arms = [asked_values(side, name) for side in (evidence.candidate, evidence.baseline)]
    values = sorted({*arms[0], *arms[1]}, key=str)
    return mix_p(*([int((arm == value).sum()) for value in values] for arm in arms))


def _lengths_p(evidence: Evidence) -> float | None:
    arms = [known_values(side, LENGTH) for side in (evidence.candidate, evidence.baseline)]
    if min(len(arm) for arm in arms) == 0:
        return None
    return float(ks_2samp(*(arm.astype(np.float64) for arm in arms)).pvalue)


def _versions_served(evidence: Evidence) -> Iterator[ArmDifference]:
    for side, arm in evidence.arms:
        if (unlike := several_served(arm, served_of(side))) is not None:
            yield unlike


def served_of(side: Side) -> ArmServed:
    """Return how an arm's answers were served, as they record it."""
    known = known_values(side, "fingerprint")
    return ArmServed(
        fingerprints=tuple(sorted({str(one) for one in known})),
        methods=tuple(sorted({str(one) for one in known_values(side, "spec_method")})),
        silent=max(int(side.answered.sum()) - len(known), 0),
        requests=len(side.answered),
    )


def several_served(arm: str, served: ArmServed) -> ArmDifference | None:
    """Return a difference if an arm was, or may have been, served by several configurations."""
    if len(served.fingerprints) > 1:
        return ArmDifference(_several_configurations(arm, served.fingerprints))
    if len(served.methods) > 1:
        shown = ", ".join(served.methods)
        return ArmDifference(f"the {arm} speculated by {len(served.methods)} methods ({shown})")
    if served.fingerprints and served.silent > MAX_UNBOUNDED_SHARE * served.requests:
        return ArmDifference(
            f"{served.silent:,} of the {arm}'s answers do not say in which configuration they were "
            "served (`draftgate.fingerprint`), which others do",
            served=True,
        )
    return None


def _judges(evidence: Evidence, *, paired: bool) -> Iterator[ArmDifference]:
    """Yield the metrics whose compared scores are from several evaluators or versions."""
    for metric in evidence.metrics:
        if metric not in METRICS:
            continue
        both = evidence.scores(metric).both
        found = judges_of(evidence, metric, both if paired else np.ones_like(both))
        if len(found) > 1:
            yield ArmDifference(several_judges(sorted(found)), metric)


def judges_of(evidence: Evidence, metric: str, rows: BoolColumn) -> set[str]:
    """Return the evaluators, with versions, of a metric's scores."""
    found = set[str]()
    for side in (evidence.baseline, evidence.candidate):
        judges = side.recorded.get(f"judge_{metric}")
        if judges is not None:
            found |= {str(one) for one in judges[rows & ~np.isnan(side.score(metric))]}
    return found


def _several_configurations(arm: str, fingerprints: Sequence[str]) -> str:
    """Return the sentence that an arm had several configurations."""
    shown = ", ".join(name[:12] for name in fingerprints[:3])
    return f"the {arm} was served in {len(fingerprints)} configurations (fingerprints {shown})"


def several_judges(judges: Sequence[str]) -> str:
    """Return the sentence that scores of several evaluators are not comparable."""
    words = f"its scores are of several evaluators or versions ({', '.join(judges)})"
    return f"{words}; run `draftgate evaluate` with one"


def known_values(side: Side, name: str) -> Objects:
    """Return the known values of a recorded column."""
    values = side.recorded.get(name)
    if values is None:
        return np.array([], dtype=np.object_)
    return values[side.present & is_known(values)]


def asked_values(side: Side, name: str) -> Objects:
    """Return the values of a column; None where a request did not set what it may set."""
    values = side.recorded.get(name)
    if values is None or name not in _GIVEN:
        return known_values(side, name)
    return values[side.present]


def is_known(values: Objects) -> BoolColumn:
    """Return which of the values are not None."""
    return np.asarray(values != None, dtype=np.bool_)  # noqa: E711  # elementwise


def _differing(baseline: Objects, candidate: Objects) -> BoolColumn:
    known = is_known(baseline) & is_known(candidate)
    return known & np.asarray(baseline != candidate, dtype=np.bool_)


def _shown(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
