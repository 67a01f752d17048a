"""What keeps pairs from being evidence, seen in any window: arms unlike, or another treatment."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from collector.contract import Reason, Watch, WatchCell, WatchDoubt
from evals.evidence import BoolColumn, Evidence
from evals.gate.cut_answers import bounded_by, cut_words, shorter
from evals.gate.likeness import (
    inside_pairs,
    judges_of,
    known_values,
    several_configurations,
    several_judges,
)
from evals.gate.measured import MAX_UNBOUNDED_SHARE, Obstacle
from evals.gate.treatment import MAX_IDLE_SHARE, shortcomings
from evals.policy import METRICS, Policy
from evals.watch.window import Window

_KEPT = 3
"""Names that are kept of what must be one: enough to show that they are several."""
_JUDGE = "judge of "


def with_doubts(watch: Watch, window: Window, new: BoolColumn, policy: Policy) -> Watch:
    """Return the watch with what the window's new pairs, and its scores, show."""
    evidence = window.evidence.take(new)
    short, other = shorter(evidence)
    rerouted = evidence.baseline.fallback | evidence.candidate.fallback
    watch = replace(
        watch,
        named=_named(watch.named, evidence, window.evidence),
        rerouted=watch.rerouted + int(rerouted.sum()),
        shorter=(watch.shorter[0] + short, watch.shorter[1] + other),
    )
    known = {(one.reason, one.metric, _kind(one.words)) for one in watch.doubts}
    fresh = [
        one
        for one in (*_unlike(evidence, policy), *_of(shortcomings(evidence)), *_several(watch))
        if (one.reason, one.metric, _kind(one.words)) not in known
    ]
    return replace(watch, doubts=(*watch.doubts, *fresh))


def doubt_of(cell: WatchCell, watch: Watch, policy: Policy) -> WatchDoubt | None:
    """Return the first reason for which a cell proves nothing."""
    found = (*watch.doubts, *_of_sums(watch, policy))
    return next((one for one in found if one.metric in (None, cell.metric)), None)


def _kind(words: str) -> str:
    """Return what a doubt is about: its words without their numbers."""
    return "".join(letter for letter in words if not letter.isdigit() and letter != ",")[:40]


def _unlike(evidence: Evidence, policy: Policy) -> Iterator[WatchDoubt]:
    if not policy.paired:
        return
    for one in inside_pairs(evidence):
        yield WatchDoubt(reason=Reason.MISMATCH, words=one.words, metric=one.metric)


def _of(obstacles: Iterator[Obstacle]) -> Iterator[WatchDoubt]:
    for one in obstacles:
        yield WatchDoubt(reason=one.reason, words=one.words)


def _several(watch: Watch) -> Iterator[WatchDoubt]:
    for name, values in watch.named.items():
        if len(values) < 2:
            continue
        judge = name.startswith(_JUDGE)
        words = several_judges(values) if judge else several_configurations(name, values)
        metric = name.removeprefix(_JUDGE) if judge else None
        yield WatchDoubt(reason=Reason.MISMATCH, words=words, metric=metric)


def _named(
    was: Mapping[str, tuple[str, ...]], new: Evidence, window: Evidence
) -> Mapping[str, tuple[str, ...]]:
    """Add what the window names of an arm's configuration, and of each metric's evaluators."""
    found = {
        arm: {str(one) for one in known_values(side, "fingerprint")}
        for arm, side in (("baseline", new.baseline), ("candidate", new.candidate))
    }
    every = np.ones(len(window), dtype=np.bool_)
    for metric in window.metrics:
        if metric in METRICS:
            found[f"{_JUDGE}{metric}"] = judges_of(window, metric, every)
    both = {name: sorted({*was.get(name, ()), *found.get(name, ())}) for name in {*was, *found}}
    return {name: tuple(values[:_KEPT]) for name, values in sorted(both.items()) if values}


def _of_sums(watch: Watch, policy: Policy) -> Iterator[WatchDoubt]:
    """Yield what only all windows together show."""
    answers = watch.pairs if policy.paired else sum(c.candidate for c in watch.cohorts)
    if watch.pairs == 0 or answers == 0:
        return
    if not watch.drafted and policy.validity.speculation == "required":
        words = "no count shows that the candidate drafted a token"
        yield WatchDoubt(reason=Reason.TREATMENT, words=words)
    elif 0 < watch.drafted <= MAX_IDLE_SHARE * answers:
        words = f"the candidate drafted in {watch.drafted:,} of {answers:,} answers alone"
        yield WatchDoubt(reason=Reason.TREATMENT, words=words)
    if watch.rerouted > MAX_UNBOUNDED_SHARE * watch.pairs:
        words = f"another route answered {watch.rerouted:,} of {watch.pairs:,} requests"
        yield WatchDoubt(reason=Reason.MISSING, words=words)
    if policy.paired and not bounded_by(policy):
        cut = cut_words(*watch.shorter, watch.pairs, policy)
        if cut is not None:
            yield WatchDoubt(reason=Reason.MISMATCH, words=cut)
