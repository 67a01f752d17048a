"""Two answers on the same passages, judged beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evals.evaluators.groundedness.contrast import CONTRASTS, contrast
from evals.evaluators.groundedness.judgement import (
    Judged,
    Judgement,
    SentenceJudge,
    SentenceJudgement,
    judgement,
    sentence_judgements,
)
from evals.evaluators.groundedness.twins import Key, Twins, key, twins

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
        return _alone(ours, judge), _alone(theirs, judge)
    found = twins(
        [reading.sentence for reading in ours.readings],
        [reading.sentence for reading in theirs.readings],
    )
    if not found.shared and not found.pairs:
        return _alone(ours, judge), _alone(theirs, judge)
    common = _common((ours, theirs), found)
    here, there = _Side(ours, theirs, found), _Side(theirs, ours, found.exchanged())
    return _beside(here, common, judge), _beside(there, common, judge)


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two answers."""

    ours: Judged
    theirs: Judged
    found: Twins

    @property
    def counterparts(self) -> dict[int, int | None]:
        """Return by number the sentences to be judged beside their counterparts."""
        beside: dict[int, int | None] = dict(self.found.pairs)
        # Where nothing is shared a sentence without a counterpart is judged by itself.
        return beside | (dict.fromkeys(self.found.ours) if self.found.shared else {})


def _alone(judged: Judged | None, judge: SentenceJudge) -> Judgement | None:
    return None if judged is None else judgement(judged, judge)


def _common(answers: Sequence[Judged], found: Twins) -> dict[Key, float]:
    """Return the least probability of each sentence that both answers have."""
    least: dict[Key, float] = {}
    for judged in answers:
        for reading, probability in zip(judged.readings, judged.probabilities, strict=True):
            name = key(reading.sentence)
            if name in found.shared:
                least[name] = min(least.get(name, 1.0), float(probability))
    return least


def _beside(side: _Side, common: Mapping[Key, float], judge: SentenceJudge) -> Judgement:
    contrasted, both, own = _contrasted(side, judge), max(common.values(), default=0.0), 0.0
    sentences = list[SentenceJudgement]()
    for at, alone in enumerate(sentence_judgements(side.ours, judge.passages)):
        shared = common.get(key(alone.sentence))
        if shared is not None:
            sentences.append(replace(alone, probability=shared))
            continue
        there = side.counterparts.get(at)
        instead = None if there is None else side.theirs.readings[there].sentence.text
        found = replace(alone, probability=contrasted.get(at, alone.probability), instead=instead)
        own = max(own, found.probability)
        sentences.append(found)
    differs = len(sentences) - sum(key(s.sentence) in common for s in sentences)
    value = (1 - both) * (judge.value(own) if differs else 1.0)
    return Judgement(max(both, own), value, tuple(sentences), len(sentences) - differs)


def _contrasted(side: _Side, judge: SentenceJudge) -> dict[int, float]:
    """Return the probabilities of the sentences that have a counterpart, by number."""
    rows = []
    for at, there in side.counterparts.items():
        instead = None if there is None else side.theirs.readings[there]
        values = contrast(side.ours.readings[at], instead, judge.passages)
        rows.append([values[name] for name in CONTRASTS])
    if not rows:
        return {}
    found = judge.contrasted(np.array(rows, dtype=np.float64))
    return dict(zip(side.counterparts, found.tolist(), strict=True))
