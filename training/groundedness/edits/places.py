"""Building blocks of edits: the source, the edit, and functions that make rules."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from evals.evaluators.groundedness.sentences import Sentence, sentences_of


class Source(NamedTuple):
    """A supported answer with its passages, and (`other`) one on other passages."""

    context: str
    answer: str
    other: str


class Edit(NamedTuple):
    """An edited answer; its characters from `start` to `end` (exclusive) are new."""

    answer: str
    start: int
    end: int


Rule = Callable[[Source, random.Random], Edit | None]
"""Edits an answer; `None` if the rule does not apply."""


def put(text: str, start: int, end: int, words: str) -> Edit:
    """Replace the characters from `start` to `end` by `words`."""
    edited = text[:start] + words + text[end:]
    return Edit(edited, start, max(start + len(words), start + 1))


@lru_cache(maxsize=8)
def claims(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of at least four words that are no refusal."""
    return tuple(s for s in sentences_of(text) if not s.is_refusal and len(s.tokens) >= 4)


def a_match(pattern: re.Pattern[str], text: str, rng: random.Random) -> re.Match[str] | None:
    """Return one of a pattern's matches within the claims, at random; `None` if there are none."""
    found = [m for s in claims(text) for m in pattern.finditer(text, s.start, s.end)]
    return rng.choice(found) if found else None


def like(words: str, place: str) -> str:
    """Capitalize words like the text that they replace."""
    return words[0].upper() + words[1:] if place[:1].isupper() and words else words


def replaced(
    pattern: re.Pattern[str], words: Callable[[re.Match[str], random.Random], str]
) -> Rule:
    """Return a rule that replaces one match of a pattern by other words."""

    def rule(source: Source, rng: random.Random) -> Edit | None:
        match = a_match(pattern, source.answer, rng)
        return None if match is None else put(source.answer, *match.span(), words(match, rng))

    return rule


def exchange(table: Mapping[str, str | Sequence[str]], only: str = "") -> Rule:
    """Return a rule that exchanges words in one place; the pattern `only` must follow it."""
    names = sorted(table, key=len, reverse=True)
    every = re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b" + only, re.IGNORECASE)

    def other(match: re.Match[str], rng: random.Random) -> str:
        others = table[match.group().lower()]
        return like(others if isinstance(others, str) else rng.choice(others), match.group())

    return replaced(every, other)


def exchange_all(table: Mapping[str, str]) -> Rule:
    """Return a rule that exchanges words in every place."""
    every = re.compile(
        r"\b(?:" + "|".join(map(re.escape, sorted(table, key=len, reverse=True))) + r")\b",
        re.IGNORECASE,
    )

    def rule(source: Source, _: random.Random) -> Edit | None:
        edited = every.sub(lambda m: like(table[m.group().lower()], m.group()), source.answer)
        return None if edited == source.answer else Edit(edited, 0, len(edited))

    return rule


def after_a_match(pattern: str, words: Sequence[str]) -> Rule:
    """Return a rule that inserts words after a match of a pattern."""
    every = re.compile(pattern)

    def rule(source: Source, rng: random.Random) -> Edit | None:
        text = source.answer
        match = a_match(every, text, rng)
        return None if match is None else put(text, match.end(), match.end(), rng.choice(words))

    return rule


def left_out(pattern: str) -> Rule:
    """Return a rule that deletes a match of a pattern from a sentence, but not all of it."""
    every = re.compile(pattern, re.IGNORECASE)

    def rule(source: Source, rng: random.Random) -> Edit | None:
        text = source.answer
        found = [
            (s, m)
            for s in claims(text)
            for m in every.finditer(text, s.start, s.end)
            if m.end() - m.start() < 0.6 * (s.end - s.start)
        ]
        if not found:
            return None
        sentence, match = rng.choice(found)
        start, end = match.span()
        rest = text[end : sentence.end]
        if start == sentence.start:
            rest = rest.lstrip(" ,")
            rest = rest[:1].upper() + rest[1:]
        edited = text[:start] + rest + text[sentence.end :]
        return Edit(edited, sentence.start, start + len(rest))

    return rule


def one_of(*rules: Rule) -> Rule:
    """Return a rule that tries several rules in random order, and applies the first that fits."""

    def rule(source: Source, rng: random.Random) -> Edit | None:
        for one in rng.sample(rules, len(rules)):
            edit = one(source, rng)
            if edit is not None and edit.answer != source.answer:
                return edit
        return None

    return rule
