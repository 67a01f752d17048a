"""Judge two answers on the same passages beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from evals.evaluators.groundedness.checks import CONTRADICTION
from evals.evaluators.groundedness.contrast import CONTRASTS, contrast
from evals.evaluators.groundedness.judgement import (
    JudgedAnswer,
    Judgement,
    SentenceJudge,
    SentenceJudgement,
    judge_alone,
)
from evals.evaluators.groundedness.lone_changes import is_wrong
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
_MUTUAL = -0.7
"""Log-odds above the threshold from which the doubt of a pair of sentences is mutual."""
_UNLIKE = 0.68
"""Log-odds by which the doubt of answers that have nothing in common is reduced.

Without it, two supported answers in other words would differ too often.
"""


def judge_beside(one: str, other: str, judge: SentenceJudge) -> Both:
    """Judge both answers; `None` for one without sentences.

    A sentence that both answers share gets the same probability in both, and that probability is
    not sharpened. Sentences that differ are each judged beside their counterpart. The other answer
    only shows where to look; support comes from the passages alone. Swapping the answers swaps the
    judgements. Quantities are compared in the passages' units, or in one answer's, and acronyms are
    taken for their names. Of two counterparts, the doubt that both raise is left out of the scores.
    Answers without shared sentences or counterparts are judged separately, with less doubt.
    """
    if other < one:  # a fixed order, so that swapped arguments give swapped results
        second, first = judge_beside(other, one, judge)
        return first, second
    ours = judge.sentences(one)
    theirs = judge.sentences(other, () if ours is None else ours.readings)
    if ours is None or theirs is None:
        return judge_alone(ours, judge), judge_alone(theirs, judge)
    acronyms = judge.acronyms(ours, theirs)
    ours = judge.converted(ours, acronyms)
    theirs = judge.converted(theirs, acronyms, ours)
    one_side, other_side = _keys(ours), _keys(theirs)
    found = match_sentences(one_side, other_side)
    if not found.shared and not found.pairs:
        return _unlike(ours, judge), _unlike(theirs, judge)
    sides = _Side(ours, theirs, found), _Side(theirs, ours, found.exchanged())
    here, there = (_contrasted(side, judge) for side in sides)
    mutual = {
        (a, b): _mutual(here[a].probability, there[b].probability, judge.calibration.threshold)
        for a, b in found.pairs
    }
    return (
        _beside(sides[0], here, {a: doubt for (a, _), doubt in mutual.items()}, judge),
        _beside(sides[1], there, {b: doubt for (_, b), doubt in mutual.items()}, judge),
    )


def _unlike(judged: JudgedAnswer, judge: SentenceJudge) -> Judgement | None:
    """Judge an answer that has nothing in common with the other one."""
    found = judge_alone(judged, judge)
    return found and replace(found, value=judge.value(_reduced(found.probability, _UNLIKE)))


def _mutual(ours: float, theirs: float, threshold: float) -> float:
    """Return the log-odds of doubt that two counterparts have in common."""
    least = min(ours, theirs)
    return max(float(logit(least) - logit(threshold)) - _MUTUAL, 0.0) if least > 0 else 0.0


def _reduced(probability: float, doubt: float) -> float:
    """Return the probability with its log-odds reduced."""
    if doubt == 0 or not 0 < probability < 1:
        return probability
    return float(expit(logit(probability) - doubt))


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


def _beside(
    side: _Side,
    contrasted: Mapping[int, SentenceJudgement],
    mutual: Mapping[int, float],
    judge: SentenceJudge,
) -> Judgement:
    """Judge our answer; `mutual` has the doubt in common with counterparts, in log-odds."""
    common = _common(side.ours, side.theirs, side.found.shared)
    both = max(common.values(), default=0.0)
    # As a whole answer a sentence seems more doubtful than the long answer that it is part of.
    whole = min(side.ours.probability, side.theirs.probability)
    among = max(_differing(side.found))
    sentences, worst, own = list[SentenceJudgement](), 0.0, 0.0
    own_ones = zip(side.ours.readings, side.ours.probabilities.tolist(), strict=True)
    for at, (reading, by_itself) in enumerate(own_ones):
        if at in common:
            sentences.append(SentenceJudgement(reading, common[at]))
            continue
        found = contrasted.get(at, SentenceJudgement(reading, by_itself))
        doubt = _reduced(found.probability, mutual.get(at, 0.0))
        has_error = any(
            (
                reading.missing_passages,
                reading.other_units,
                reading.other_bounds,
                reading.miscalculated,
            )
        )
        if has_error:
            doubt = max(doubt, by_itself)
        if has_error or reading.unexplained:
            found = replace(found, probability=max(found.probability, by_itself))
        sentences.append(found)
        worst, own = max(worst, found.probability), max(own, doubt)
    differ = len(sentences) - len(common)
    shared = (1 - _worst_of(len(side.found.shared), both)) ** _WEIGHT_OF_SHARED
    value = shared * (judge.value(_worst_of(among, own)) if differ else 1.0)
    probability = max(min(both, whole), _worst_of(among, worst))
    return Judgement(probability, value, tuple(sentences), len(common))


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
    rows, instead, changed = [], [], set[int]()
    for at, there in counterparts.items():
        other = None if there is None else side.theirs.readings[there]
        values = contrast(side.ours.readings[at], other, judge.passages, judge.model.choices)
        rows.append([values[name] for name in CONTRASTS])
        instead.append(None if other is None else other.sentence.text)
        ours = side.ours.readings[at].words
        if other is not None and is_wrong(ours, other.words, judge.passages):
            changed.add(at)
    wrong = float(expit(logit(judge.calibration.threshold) + CONTRADICTION))
    least = [wrong if at in changed else 0.0 for at in counterparts]
    found = np.maximum(judge.contrasted(np.array(rows, dtype=np.float64)), least).tolist()
    return {
        at: SentenceJudgement(side.ours.readings[at], probability, text)
        for at, probability, text in zip(counterparts, found, instead, strict=True)
    }
