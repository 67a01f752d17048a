"""Judge two answers on the same passages beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evals.evaluators.groundedness.contrast import CONTRASTS, contrast
from evals.evaluators.groundedness.judgement import (
    JudgedAnswer,
    Judgement,
    SentenceJudge,
    SentenceJudgement,
    judge_alone,
)
from evals.evaluators.groundedness.shared_sentences import (
    Group,
    Key,
    SentenceMatch,
    key,
    match_sentences,
)

Both = tuple[Judgement | None, Judgement | None]

_WEIGHT_OF_SHARED = 0.5
"""Exponent of what both answers share, which must not hide how they differ."""


def judge_beside(one: str, other: str, judge: SentenceJudge) -> Both:
    """Judge both answers; `None` for one without sentences.

    A sentence that both answers share gets the same probability in both, and that probability is
    not sharpened. Sentences that differ are each judged beside their counterpart. The other answer
    only shows where to look; support comes from the passages alone. Swapping the answers swaps the
    judgements. Answers without shared sentences or counterparts are judged separately.
    """
    if other < one:  # a fixed order, so that swapped arguments give swapped results
        second, first = judge_beside(other, one, judge)
        return first, second
    ours = judge.sentences(one)
    theirs = judge.sentences(other, () if ours is None else ours.readings)
    if ours is None or theirs is None:
        return judge_alone(ours, judge), judge_alone(theirs, judge)
    one_side, other_side = _keys(ours), _keys(theirs)
    found = match_sentences(one_side, other_side)
    if not found.shared and not found.pairs:
        return judge_alone(ours, judge), judge_alone(theirs, judge)
    swapped = found.exchanged()
    return (
        _beside(_Side(ours, theirs, found), _common(ours, theirs, found.shared), judge),
        _beside(_Side(theirs, ours, swapped), _common(theirs, ours, swapped.shared), judge),
    )


class _Side(NamedTuple):
    """The comparison from the side of one answer (`ours`)."""

    ours: JudgedAnswer
    theirs: JudgedAnswer
    found: SentenceMatch


def _keys(judged: JudgedAnswer) -> list[Key]:
    return [key(reading.sentence) for reading in judged.readings]


def _common(ours: JudgedAnswer, theirs: JudgedAnswer, shared: Sequence[Group]) -> dict[int, float]:
    """Return the probabilities of our shared sentences, by sentence number.

    The lower of the two answers' probabilities counts. If the answers split the same words into
    sentences differently, the worst sentences of the two sides are compared.
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
        if reading.missing_passages or reading.other_units:
            found = replace(found, probability=max(found.probability, by_itself))
        sentences.append(found)
        own, differ = max(own, found.probability), differ + 1
    own = _worst_of(among, own)
    value = (1 - both) ** _WEIGHT_OF_SHARED * (judge.value(own) if differ else 1.0)
    return Judgement(max(both, own), value, tuple(sentences), len(sentences) - differ)


def _differing(found: SentenceMatch) -> tuple[int, int]:
    """Return how many sentences of each answer are not shared: ours, theirs."""
    return len(found.pairs) + len(found.ours), len(found.pairs) + len(found.theirs)


def _worst_of(count: int, probability: float) -> float:
    """Correct the probability of the worst sentence for the number of sentences.

    Among many sentences one looks bad by chance, so the log-odds are reduced by log(count).
    """
    if count < 2 or probability >= 1:
        return probability
    odds = probability / (1 - probability) / count
    return odds / (1 + odds)


def _contrasted(side: _Side, judge: SentenceJudge) -> dict[int, SentenceJudgement]:
    """Judge our differing sentences beside their counterparts; return them by sentence number."""
    counterparts: dict[int, int | None] = dict(side.found.pairs)
    if side.found.shared:  # without shared sentences, one without a counterpart is judged alone
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
