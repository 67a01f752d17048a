"""Make grounded answers wrong in one known place, as a broken candidate might."""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from evals.evaluators.groundedness.lexicon import ANTONYM_PAIRS
from evals.evaluators.groundedness.sentences import Sentence, sentences_of
from evals.evaluators.groundedness.tokens import Token
from training.groundedness.edits.places import Source

_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|has been|have been)\b"
    r"(?!\s+not\b|n't)"
)
_UNCLEAR = frozenset(
    [
        "answer",
        "question",
        "ask",
        "find",
        "found",
        "like",
        "kind",
        "present",
        "right",
        "past",
        "show",
        "low",
        "point",
        "learn",
    ]
)
"""Words with several meanings, whose listed antonym is often wrong."""
_DIGITS = re.compile(r"\d+")


class Corrupted(NamedTuple):
    """An answer whose characters from `start` to `end` are false."""

    kind: str
    answer: str
    start: int
    end: int


def corrupt(source: Source, kind: str, rng: random.Random) -> Corrupted | None:
    """Return the answer made wrong in one sentence; `None` if this kind does not apply."""
    sentences = sentences_of(source.answer)
    rng.shuffle(sentences)
    for sentence in sentences:
        if sentence.is_refusal:
            continue
        change = KINDS[kind](sentence, source, rng)
        if change is not None:
            start, end, text = change
            answer = source.answer[:start] + text + source.answer[end:]
            return Corrupted(kind, answer, start, start + len(text))
    return None


Change = tuple[int, int, str]


def _number(sentence: Sentence, source: Source, rng: random.Random) -> Change | None:
    """Change a number to another of about the same length."""
    digits = [
        match
        for match in _DIGITS.finditer(source.answer, sentence.start, sentence.end)
        if match.group() in source.context and _in_tokens(match.start(), sentence)
    ]
    if not digits:
        return None
    match = rng.choice(digits)
    low, high = 10 ** (len(match.group()) - 1), 10 ** len(match.group()) - 1
    value = rng.randint(low if len(match.group()) > 1 else 2, high)
    if len(match.group()) == 4 and match.group()[:2] in ("19", "20"):
        value = int(match.group()) + rng.choice((-1, 1)) * rng.randint(1, 20)
    text = str(value)
    return None if text == match.group() else (match.start(), match.end(), text)


def _entity(sentence: Sentence, source: Source, rng: random.Random) -> Change | None:
    """Replace a name by another name from these passages, or from an answer on others."""
    ours = _names(sentence.tokens[1:])
    if not ours:
        return None
    token = rng.choice(ours)
    text = source.context if rng.random() < 0.5 else source.other
    others = [
        text[t.start : t.end]
        for s in sentences_of(text)
        for t in _names(s.tokens[1:])
        if t.form.stem != token.form.stem and t.end - t.start > 2 and t.form.stem != "passag"
    ]
    return (token.start, token.end, rng.choice(others)) if others else None


def _negation(sentence: Sentence, source: Source, rng: random.Random) -> Change | None:
    """Insert `not` after an auxiliary verb."""
    verbs = list(_AUXILIARY.finditer(source.answer, sentence.start, sentence.end))
    if not verbs:
        return None
    verb = rng.choice(verbs)
    return verb.start(), verb.end(), f"{verb.group()} not"


def _antonym(sentence: Sentence, source: Source, rng: random.Random) -> Change | None:
    """Replace a word by its antonym."""
    opposites = _opposites()
    places = [
        (t, word)
        for t in sentence.tokens
        if (word := source.answer[t.start : t.end].lower()) in opposites
        and t.form.is_content
        and word not in _UNCLEAR
    ]
    if not places:
        return None
    token, word = rng.choice(places)
    return token.start, token.end, rng.choice(opposites[word])


def _roles(sentence: Sentence, source: Source, rng: random.Random) -> Change | None:
    """Swap two names, or two numbers, of a sentence."""
    names = _names(sentence.tokens[1:])
    numbers = [t for t in sentence.tokens if t.form.is_number]
    sets = [s for s in (names, numbers) if len({t.form.stem for t in s}) > 1]
    if not sets:
        return None
    one, other = sorted(rng.sample(rng.choice(sets), 2), key=lambda t: t.start)
    if one.form.stem == other.form.stem:
        return None
    text, (a, b), (c, d) = source.answer, one[1:3], other[1:3]
    return a, d, text[c:d] + text[b:c] + text[a:b]


def _foreign(sentence: Sentence, source: Source, rng: random.Random) -> Change | None:
    """Replace the sentence by one from an answer on other passages."""
    others = [s.text for s in sentences_of(source.other) if len(s.tokens) >= 6 and not s.is_refusal]
    return (sentence.start, sentence.end, rng.choice(others)) if others else None


KINDS: dict[str, Callable[[Sentence, Source, random.Random], Change | None]] = {
    "number": _number,
    "entity": _entity,
    "negation": _negation,
    "antonym": _antonym,
    "roles": _roles,
    "foreign": _foreign,
}


def _names(tokens: Sequence[Token]) -> list[Token]:
    return [
        t for t in tokens if t.is_name and t.form.is_content and not t.form.is_number
        and t.form.stem != "passag"
    ]  # fmt: skip


def _in_tokens(start: int, sentence: Sentence) -> bool:
    return any(t.start <= start < t.end for t in sentence.tokens)


@cache
def _opposites() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one, other in ANTONYM_PAIRS:
        found.setdefault(one, []).append(other)
        found.setdefault(other, []).append(one)
    return found
