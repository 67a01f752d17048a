"""The default evaluator of groundedness: local, on the CPU, without a language model."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache, partial
from typing import ClassVar

from collector.contract import Generation, Score, ScoredSpan
from evals.evaluators.answers import NOT_RECORDED, answer_text, prompt_text
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.groundedness.comparison import Both, judge_beside
from evals.evaluators.groundedness.judgement import (
    MAX_ANSWER_CHARACTERS,
    MAX_CONTEXT_CHARACTERS,
    Judgement,
    SentenceJudge,
    by_forests,
    indexed,
    judge_alone,
)
from evals.evaluators.groundedness.language import why_unreadable
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.passages import Passages, PassageSpan

_Judge = Callable[[str, tuple[str, ...], str], Judgement | None]
"""Judges an answer, given its passages and question."""
_DECISION_VALUE = 0.5
_MAX_NAMED = 3
_MAX_QUOTED = 160


class Groundedness:
    """Support of every sentence by the passages, measured on its words by a small trained model.

    The score is near 1 if all sentences are supported, near 0 if one is not, and 0.5 at the
    decision threshold; `docs/evaluators.md` says why a release gate needs this. The explanation
    gives the calibrated probability, the worst sentences with the faults of each, and the
    passage nearest to each; the spans give every sentence's support. An answer that only declines
    claims nothing and scores 1. English only.

    `score_beside` finds more by comparing with the other arm's answer to the same prompt.

    Applies to generations with passages.
    """

    name = "lexical-support"
    version = "23"
    metric = "groundedness"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.CONTEXT})

    def __init__(self) -> None:
        # The two answers of a pair are scored one after the other, from one judgement of both.
        self._both = lru_cache(maxsize=4)(self._judged_beside)

    @property
    def version_beside(self) -> str:
        """Version of scores by `score_beside`."""
        return f"{self.version}+pair"

    def score(self, generation: Generation) -> Score | None:
        """Score the answer by itself; an answer without words stays unscored."""
        return self._scored(generation, self.judge)

    def score_beside(self, generation: Generation, other: Generation) -> Score | None:
        """Score the answer, with a closer look where `other`, to the same prompt, differs.

        The answer is judged by itself if `other` has other passages, none, or no text.
        """
        mine, theirs = generation.content, other.content
        text = answer_text(other)
        if mine is None or theirs is None or mine.context != theirs.context or text is None:
            found = self._scored(generation, self.judge)
        else:
            found = self._scored(generation, partial(self._judged_of_two, text))
        return None if found is None else replace(found, version=self.version_beside)

    @property
    def threshold(self) -> float:
        """Probability at or above which an answer counts as unsupported."""
        return shipped().calibration.threshold

    def judging(self, texts: tuple[str, ...], question: str = "") -> SentenceJudge:
        """Return the judge of sentences for these passages and this question."""
        return by_forests(indexed(texts), question)

    def judge(self, answer: str, texts: tuple[str, ...], question: str = "") -> Judgement | None:
        """Judge an answer; `None` if it has no sentence."""
        judge = self.judging(texts, question)
        return judge_alone(judge.sentences(answer), judge)

    def close(self) -> None:
        """Release nothing: indexes are shared and bounded."""

    def _judged_of_two(
        self, other: str, answer: str, texts: tuple[str, ...], question: str
    ) -> Judgement | None:
        first, second = sorted((answer, other))
        of_first, of_second = self._both(first, second, texts, question)
        return of_first if answer == first else of_second

    def _judged_beside(self, one: str, other: str, texts: tuple[str, ...], question: str) -> Both:
        return judge_beside(one, other, self.judging(texts, question))

    def _scored(self, generation: Generation, judge: _Judge) -> Score | None:
        texts = generation.content.context if generation.content else None
        if texts is None:
            return None
        answer = answer_text(generation)
        if (reason := _unscored_reason(texts, answer)) or answer is None:
            return unscored(self, generation, reason or NOT_RECORDED)
        passages = indexed(texts)
        question = prompt_text(generation) or ""
        judgement = None if passages.is_empty else judge(answer, texts, question)
        if passages.is_empty or judgement is None:
            whose = "the passages have" if passages.is_empty else "the answer has"
            return unscored(self, generation, f"{whose} no words")
        return self._score(generation, answer, passages, judgement)

    def _score(
        self, generation: Generation, answer: str, passages: Passages, judgement: Judgement
    ) -> Score:
        spans = tuple(
            ScoredSpan(start=s.sentence.start, end=s.sentence.end, support=1 - s.probability)
            for s in judgement.sentences
        )
        if judgement.declines:
            whole = tuple(replace(span, support=1.0) for span in spans)
            why = "declines to answer"
            return scored(self, generation, 1.0, label="refusal", explanation=why, spans=whole)
        unsupported = judgement.probability >= self.threshold
        return scored(
            self,
            generation,
            judgement.value,
            label="unsupported" if unsupported else "supported",
            explanation=_explanation(answer, passages, judgement, self.threshold),
            spans=spans,
        )


def _unscored_reason(texts: tuple[str, ...], answer: str | None) -> str | None:
    """Return why an answer cannot be judged, `None` if it can."""
    size = sum(map(len, texts))
    if not any(text.strip() for text in texts):
        return "the passages are empty"
    if answer is None:
        return NOT_RECORDED
    if size > MAX_CONTEXT_CHARACTERS:
        return f"the passages have {size:,} characters, more than {MAX_CONTEXT_CHARACTERS:,}"
    return why_unreadable(answer[:MAX_ANSWER_CHARACTERS], partial(_is_known, texts))


def _is_known(texts: tuple[str, ...], stem: str) -> bool:
    return stem in shipped().rarity.known or stem in indexed(texts).ids


def _explanation(answer: str, passages: Passages, judgement: Judgement, threshold: float) -> str:
    """Give the probability, and the sentences above the threshold with the faults of each."""
    lines = [f"{judgement.probability:.0%} likely to hold something unsupported"]
    if len(answer) > MAX_ANSWER_CHARACTERS:
        lines[0] += f"; judged by its first {MAX_ANSWER_CHARACTERS:,} characters"
    if judgement.shared is not None:
        count = len(judgement.sentences)
        lines[0] += f"; the other answer has {judgement.shared} of its {count} sentences, too"
    worst = sorted(judgement.sentences, key=lambda s: -s.probability)
    named = [s for s in worst if s.probability >= threshold][:_MAX_NAMED]
    together = "" if named else "doubtful together with others, "
    if not named and (judgement.probability >= threshold or judgement.value < _DECISION_VALUE):
        named = worst[:1]
    for found in named:
        line = f"{together}{found.reason(answer)}: {_shortened(found.sentence.text)!r}"
        if (nearest := found.nearest(passages)) is not None:
            line += f"; nearest: {_quoted(passages, nearest)}"
        if found.instead is not None:
            line += f"; the other answer: {_shortened(found.instead)!r}"
        lines.append(line)
    return "\n".join(lines)


def _quoted(passages: Passages, span: PassageSpan) -> str:
    text = passages.texts[span.passage][span.start : span.end]
    return f"passage {span.passage + 1}, {_shortened(' '.join(text.split()))!r}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 1] + "…"
