"""Doubts about the evidence, seen in any window: the arms differ, or no real treatment."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace

import numpy as np

from collector.contract import (
    ArmServed,
    Reason,
    ReportedSpeculation,
    Watch,
    WatchCell,
    WatchDoubt,
)
from evals.evidence.columns import BoolColumn, Evidence
from evals.gate.cut_answers import (
    bounded_by,
    cut_words,
    shorter,
    uncounted_on_one_side,
)
from evals.gate.likeness import (
    inside_pairs,
    judges_of,
    served_of,
    several_judges,
    several_served,
)
from evals.gate.measured import MAX_UNBOUNDED_SHARE, Obstacle
from evals.gate.measured_times import copies_at_once, no_moments
from evals.gate.treatment import idle_words, shortcomings, speculation_of
from evals.policy import Policy
from evals.policy.rules import METRICS
from evals.watch.seen import copied, unlike, with_mixes, with_times
from evals.watch.window import Window

_KEPT = 3
"""Names kept of a value that must be unique; enough to show several."""


def with_doubts(watch: Watch, window: Window, new: BoolColumn, policy: Policy) -> Watch:
    """Return the watch with the doubts from the window's new pairs and scores."""
    evidence = window.evidence.take(new)
    short, other = shorter(evidence)
    rerouted = evidence.baseline.fallback | evidence.candidate.fallback
    watch = replace(
        watch,
        judges=_judges(watch.judges, window.evidence),
        served=_served(watch.served, evidence),
        speculation=_sum(watch.speculation, speculation_of(evidence.candidate)),
        rerouted=watch.rerouted + int(rerouted.sum()),
        shorter=(watch.shorter[0] + short, watch.shorter[1] + other),
        times=with_times(watch.times, evidence, paired=policy.paired),
        mixes=watch.mixes if policy.paired else with_mixes(watch.mixes, evidence),
    )
    known = {(one.reason, one.metric, _kind(one.words)) for one in watch.doubts}
    fresh = [
        one
        for one in (
            *_pair_differences(evidence, policy),
            *_doubts_from(_not_genuine(evidence, policy)),
            *_judge_doubts(watch),
        )
        if (one.reason, one.metric, _kind(one.words)) not in known
    ]
    return replace(watch, doubts=(*watch.doubts, *fresh))


def doubt_of(cell: WatchCell, watch: Watch, policy: Policy) -> WatchDoubt | None:
    """Return the first doubt that prevents a cell from proving anything, if any."""
    found = (*watch.doubts, *_cumulative_doubts(watch, policy))
    return next((one for one in found if one.metric in (None, cell.metric)), None)


def _kind(words: str) -> str:
    """Return a doubt's kind: its words without the numbers."""
    return "".join(letter for letter in words if not letter.isdigit() and letter != ",")[:40]


def _pair_differences(evidence: Evidence, policy: Policy) -> Iterator[WatchDoubt]:
    if not policy.paired:
        return
    for one in inside_pairs(evidence):
        yield WatchDoubt(reason=Reason.MISMATCH, words=one.words, metric=one.metric)


def _not_genuine(evidence: Evidence, policy: Policy) -> Iterator[Obstacle]:
    yield from shortcomings(evidence)
    yield from copies_at_once(evidence)
    yield from no_moments(evidence)
    yield from uncounted_on_one_side(evidence, policy)


def _doubts_from(obstacles: Iterator[Obstacle]) -> Iterator[WatchDoubt]:
    for one in obstacles:
        yield WatchDoubt(reason=one.reason, words=one.words)


def _judge_doubts(watch: Watch) -> Iterator[WatchDoubt]:
    for metric, judges in watch.judges.items():
        if len(judges) > 1:
            yield WatchDoubt(reason=Reason.MISMATCH, words=several_judges(judges), metric=metric)


def _judges(was: Mapping[str, tuple[str, ...]], window: Evidence) -> Mapping[str, tuple[str, ...]]:
    """Add the evaluators of the window's scores, including those of pairs counted already."""
    every = np.ones(len(window), dtype=np.bool_)
    found = dict(was)
    for metric in sorted({*window.metrics} & {*METRICS}):
        if judges := {*was.get(metric, ()), *judges_of(window, metric, every)}:
            found[metric] = _some(judges)
    return found


def _served(was: Mapping[str, ArmServed], new: Evidence) -> Mapping[str, ArmServed]:
    """Add how the arms were served in the new pairs."""
    found = {}
    for arm, side in (("baseline", new.baseline), ("candidate", new.candidate)):
        before, after = was.get(arm, ArmServed()), served_of(side)
        found[arm] = ArmServed(
            fingerprints=_some({*before.fingerprints, *after.fingerprints}),
            methods=_some({*before.methods, *after.methods}),
            silent=before.silent + after.silent,
            requests=before.requests + after.requests,
        )
    return found


def _some(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names)[:_KEPT])


def _sum(one: ReportedSpeculation, other: ReportedSpeculation) -> ReportedSpeculation:
    both = asdict(one), asdict(other)
    return ReportedSpeculation(**{name: both[0][name] + both[1][name] for name in both[0]})


def _cumulative_doubts(watch: Watch, policy: Policy) -> Iterator[WatchDoubt]:
    """Yield the doubts that only all windows together show."""
    if watch.pairs == 0:
        return
    for again in copied(watch.times):
        yield WatchDoubt(reason=Reason.MISMATCH, words=again)
    for mix in unlike(watch, policy):
        yield WatchDoubt(reason=Reason.MISMATCH, words=mix.words)
    for arm, served in watch.served.items():
        if (difference := several_served(arm, served)) is not None:
            yield WatchDoubt(reason=Reason.MISMATCH, words=difference.words)
    if (words := idle_words(watch.speculation, policy)) is not None:
        yield WatchDoubt(reason=Reason.TREATMENT, words=words)
    if watch.rerouted > MAX_UNBOUNDED_SHARE * watch.pairs:
        words = f"another route answered {watch.rerouted:,} of {watch.pairs:,} requests"
        yield WatchDoubt(reason=Reason.MISSING, words=words)
    if policy.paired and not bounded_by(policy):
        cut = cut_words(*watch.shorter, watch.pairs, policy)
        if cut is not None:
            yield WatchDoubt(reason=Reason.MISMATCH, words=cut)
