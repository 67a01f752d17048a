"""The share of an answer's sentences that its retrieved passages support."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import Need, scored, unscored

MIN_SUPPORT = 0.5
"""Share of a sentence's content words that one window must hold."""
WINDOW_WORDS = 120
_MAX_NAMED = 3

_WORD = re.compile(r"[#$€£]?[^\W_]+(?:[-'’./:,][^\W_]+)*%?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[^a-z])|\n+")
_REFUSAL = re.compile(
    r"\b(?:(?:can(?:no|')t|cannot|could not|couldn't|unable to|not able to)\s+"
    r"(?:\w+\s+){0,2}?(?:answer|find|determine|tell|say|help|provide)"
    r"|(?:no|not enough|insufficient)\s+information"
    r"|(?:do|does|did)(?: not|n't)\s+(?:contain|mention|provide|say|specify|state|know)"
    r"|not\s+(?:mentioned|provided|specified|stated|given|available))\b",
    re.IGNORECASE,
)
_STOP_WORD_LIST = """
a about after all also an and any are as at be been but by can could did do does each for from had
has have he her here his how i if in into is it its just may me might more most my no nor not of on
one only or other our out over she should so some such than that the their them then there these
they this those to too under until up very was we were what when where which while who will with
would you your
please sorry thank thanks hello hi welcome regards
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence's content words, and those of them that must stand in the passages exactly."""

    text: str
    words: frozenset[str]
    specifics: tuple[str, ...]
    """Numbers, identifiers and names, as written."""


@dataclass(frozen=True, slots=True)
class _Context:
    """The passages, indexed once: the words of every window, and of everything."""

    windows: tuple[frozenset[str], ...]
    words: frozenset[str]


class Groundedness:
    """Lexical support, sentence by sentence; needs no model.

    A sentence is supported where one window of the passages holds at least half of its content
    words and every number, identifier and name in it. The score is the share of supported
    sentences. A sentence that declines to answer claims nothing and counts as supported. It finds
    inventions and mixed-up facts, not contradictions made of the passages' own words, and it suits
    answers that restate facts. On free prose it is weak, hardly better than the answer's length.

    Applies where a generation carries passages.
    """

    name = "lexical-support"
    version = "1"
    metric = "groundedness"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.CONTEXT})

    def score(self, generation: Generation) -> Score | None:
        """Score the answer; an empty one claims nothing that could be judged."""
        passages = generation.content.context if generation.content else None
        if passages is None:
            return None
        if not any(passage.strip() for passage in passages):
            return unscored(self, generation, "the passages are empty")
        if (text := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        sentences = _sentences(text)
        if not sentences:
            return unscored(self, generation, "the answer has no words")
        context = _indexed(passages)
        claims = [s for s in sentences if not _REFUSAL.search(s.text)]
        if not claims:
            return scored(self, generation, 1.0, label="refusal", explanation="declines to answer")
        problems = [p for p in (_problem(s, context) for s in claims) if p is not None]
        value = 1 - len(problems) / len(sentences)
        return scored(
            self,
            generation,
            value,
            label="unsupported" if problems else "supported",
            explanation="; ".join(problems[:_MAX_NAMED]) or None,
        )

    def close(self) -> None:
        """Release nothing."""


def _problem(sentence: _Sentence, context: _Context) -> str | None:
    """Return what the passages do not support, `None` where one window holds the sentence."""
    absent = [s for s in sentence.specifics if not _forms(s) & context.words]
    if absent:
        return f"{', '.join(absent)} not in the passages: {sentence.text[:120]!r}"
    needed = [w for w in context.windows if all(_forms(s) & w for s in sentence.specifics)]
    if not needed:
        together = ", ".join(sentence.specifics)
        return f"{together} not together in any passage: {sentence.text[:120]!r}"
    if not sentence.words:
        return None
    support = max(len(sentence.words & window) for window in needed) / len(sentence.words)
    if support >= MIN_SUPPORT:
        return None
    return f"only {support:.0%} of the words in one passage: {sentence.text[:120]!r}"


def _sentences(text: str) -> list[_Sentence]:
    found = (_sentence(part.strip()) for part in _SENTENCE_END.split(text))
    return [sentence for sentence in found if sentence.words or sentence.specifics]


def _sentence(text: str) -> _Sentence:
    words = _WORD.findall(text)
    # The first word is written large whatever it is, so that only the later ones can be names.
    specifics = [w for i, w in enumerate(words) if _has_digit(w) or (i > 0 and _is_name(w))]
    content = {_stem(w) for w in words if w.lower() not in _STOP_WORDS}
    return _Sentence(text, frozenset(content), tuple(dict.fromkeys(specifics)))


@lru_cache(maxsize=64)
def _indexed(passages: tuple[str, ...]) -> _Context:
    """Index the passages once for all answers on them; long ones in overlapping windows."""
    windows = []
    for passage in passages:
        words = _WORD.findall(passage)
        for start in range(0, max(len(words) - WINDOW_WORDS // 2, 1), WINDOW_WORDS // 2):
            part = words[start : start + WINDOW_WORDS]
            windows.append(frozenset(form for word in part for form in _forms(word)))
    return _Context(tuple(windows), frozenset().union(*windows))


def _forms(word: str) -> frozenset[str]:
    """Return the forms under which a word is found: itself, its stem, and the bare number."""
    lower = word.lower()
    return frozenset({lower, _stem(word), lower.strip("#$€£%").replace(",", "")})


def _stem(word: str) -> str:
    """Cut the commonest English endings, so that `closes` finds `closed`."""
    lower = word.lower().removesuffix("'s").removesuffix("’s")
    if _has_digit(lower):
        return lower
    for ending in ("ing", "ed", "es", "s", "e"):
        if lower.endswith(ending) and len(lower) - len(ending) >= 3:
            return lower.removesuffix(ending)
    return lower


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


def _is_name(word: str) -> bool:
    return word[0].isupper() and word.lower() not in _STOP_WORDS
