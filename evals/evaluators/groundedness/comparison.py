"""Two answers on the same passages, judged beside each other."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from evals.evaluators.groundedness.contrast import CONTRASTS, contrast
from evals.evaluators.groundedness.judgement import (
    Judged,
    Judgement,
    SentenceJudge,
    SentenceJudgement,
    alone,
)
from evals.evaluators.groundedness.shared_sentences import Key, SentenceMatch, key, twins

Both = tuple[Judgement | None, Judgement | None]


def judge_beside(one: str, other: str, judge: SentenceJudge) -> Both:
    """Judge both answers, `None` where one has no sentence.

    What both say is the same for both: it counts by the probability that each has it from, which
    is not sharpened. Of sentences that differ each is judged beside its counterpart. The other
    answer only tells where to look, the passages alone what is supported; and with the answers
    exchanged the judgements are the same, exchanged. Answers that have no sentence in common, and
    no variants of one, are judged each by itself.
    """
    if other < one:  # so that in either order the same is read first
        second, first = judge_beside(other, one, judge)
        return first, second
    ours = judge.sentences(one)
    theirs = judge.sentences(other, () if ours is None else ours.readings)
    if ours is None or theirs is None:
        return alone(ours, judge), alone(theirs, judge)
    one_side, other_side = _keys(ours), _keys(theirs)
    found = twins(one_side, other_side)
    if not found.shared and not found.pairs:
        return alone(ours, judge), alone(theirs, judge)
    common = _common(ours, one_side, found.shared)
    for name, probability in _common(theirs, other_side, found.shared).items():
        common[name] = min(common[name], probability)
    return (
        _beside(_Side(ours, one_side, theirs, found), common, judge),
        _beside(_Side(theirs, other_side, ours, found.exchanged()), common, judge),
    )


class _Side(NamedTuple):
    """One of the two answers."""

    ours: Judged
    keys: Sequence[Key]
    theirs: Judged
    found: SentenceMatch


def _keys(judged: Judged) -> list[Key]:
    return [key(reading.sentence) for reading in judged.readings]


def _common(judged: Judged, keys: Sequence[Key], shared: Collection[Key]) -> dict[Key, float]:
    """Return the least probability of each sentence that both answers have."""
    least: dict[Key, float] = {}
    for name, probability in zip(keys, judged.probabilities.tolist(), strict=True):
        if name in shared:
            least[name] = min(least.get(name, 1.0), probability)
    return least


def _beside(side: _Side, common: Mapping[Key, float], judge: SentenceJudge) -> Judgement:
    both, own, differ = max(common.values(), default=0.0), 0.0, 0
    contrasted = _contrasted(side, judge)
    sentences = list[SentenceJudgement]()
    own_ones = zip(side.ours.readings, side.keys, side.ours.probabilities.tolist(), strict=True)
    for at, (reading, name, by_itself) in enumerate(own_ones):
        if name in common:
            sentences.append(SentenceJudgement(reading, common[name]))
            continue
        found = contrasted.get(at, SentenceJudgement(reading, by_itself))
        sentences.append(found)
        own, differ = max(own, found.probability), differ + 1
    value = (1 - both) * (judge.value(own) if differ else 1.0)
    return Judgement(max(both, own), value, tuple(sentences), len(sentences) - differ)


def _contrasted(side: _Side, judge: SentenceJudge) -> dict[int, SentenceJudgement]:
    """Return what is said, by number, of the sentences that are judged beside a counterpart."""
    counterparts: dict[int, int | None] = dict(side.found.pairs)
    if side.found.shared:  # else a sentence without a counterpart is judged by itself
        counterparts |= dict.fromkeys(side.found.ours)
    if not counterparts:
        return {}
    rows, instead = [], []
    for at, there in counterparts.items():
        other = None if there is None else side.theirs.readings[there]
        values = contrast(side.ours.readings[at], other, judge.passages)
        rows.append([values[name] for name in CONTRASTS])
        instead.append(None if other is None else other.sentence.text)
    found = judge.contrasted(np.array(rows, dtype=np.float64)).tolist()
    return {
        at: SentenceJudgement(side.ours.readings[at], probability, text)
        for at, probability, text in zip(counterparts, found, instead, strict=True)
    }
