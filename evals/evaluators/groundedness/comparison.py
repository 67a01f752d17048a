"""Two answers on the same passages, judged beside each other."""

from collections.abc import Mapping, Sequence
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
from evals.evaluators.groundedness.shared_sentences import Group, Key, SentenceMatch, key, twins

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
    turned = found.exchanged()
    return (
        _beside(_Side(ours, theirs, found), _common(ours, theirs, found.shared), judge),
        _beside(_Side(theirs, ours, turned), _common(theirs, ours, turned.shared), judge),
    )


class _Side(NamedTuple):
    """One of the two answers."""

    ours: Judged
    theirs: Judged
    found: SentenceMatch


def _keys(judged: Judged) -> list[Key]:
    return [key(reading.sentence) for reading in judged.readings]


def _common(ours: Judged, theirs: Judged, shared: Sequence[Group]) -> dict[int, float]:
    """Return, by number, the probabilities of our sentences that both answers have.

    A sentence has the lesser one of both. Where both split the same words otherwise, the worst
    sentence of either side is compared.
    """
    found: dict[int, float] = {}
    for here, there in shared:
        own, other = (
            [float(judged.probabilities[n]) for n in numbers]
            for judged, numbers in ((ours, here), (theirs, there))
        )
        is_split = len(own) != len(other)
        least = min(max(own), max(other)) if is_split else min(own + other)
        found |= {n: min(p, least) if is_split else least for n, p in zip(here, own, strict=True)}
    return found


def _beside(side: _Side, common: Mapping[int, float], judge: SentenceJudge) -> Judgement:
    both, own, differ = max(common.values(), default=0.0), 0.0, 0
    among = max(_differing(side.found))
    contrasted = _contrasted(side, judge)
    sentences = list[SentenceJudgement]()
    own_ones = zip(side.ours.readings, side.ours.probabilities.tolist(), strict=True)
    for at, (reading, by_itself) in enumerate(own_ones):
        if at in common:
            sentences.append(SentenceJudgement(reading, common[at]))
            continue
        found = contrasted.get(at, SentenceJudgement(reading, by_itself))
        sentences.append(found)
        own, differ = max(own, found.probability), differ + 1
    own = _worst_of(among, own)
    value = (1 - both) * (judge.value(own) if differ else 1.0)
    return Judgement(max(both, own), value, tuple(sentences), len(sentences) - differ)


def _differing(found: SentenceMatch) -> tuple[int, int]:
    """Return how many sentences of each answer the other one lacks."""
    return len(found.pairs) + len(found.ours), len(found.pairs) + len(found.theirs)


def _worst_of(count: int, probability: float) -> float:
    """Return the probability of the worst of several sentences, corrected for their number.

    Of many sentences one looks bad by chance: the log-odds fall by the number's logarithm.
    """
    if count < 2 or probability >= 1:
        return probability
    odds = probability / (1 - probability) / count
    return odds / (1 + odds)


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
