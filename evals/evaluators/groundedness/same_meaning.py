"""Compare two sentences up to synonyms, equivalent phrases, filler words and framing."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import NamedTuple

from evals.evaluators.groundedness.alignment import opposites
from evals.evaluators.groundedness.equivalents import PAST_FORMS, PHRASES, VERBS
from evals.evaluators.groundedness.framing import claim
from evals.evaluators.groundedness.sentences import Sentence, named_passages
from evals.evaluators.groundedness.tokens import Token, synonyms_of
from evals.evaluators.groundedness.word_classes import UNITS

_FILLERS = frozenset(["a", "an", "the", "that", "which", "also", "please", "then", "per"])
"""Words that do not count in a comparison."""
_CERTAIN = "certain"
_SURE_LIST = "is are was were be been am not make makes made for almost quite so"
_SURE = frozenset(_SURE_LIST.split())
"""Words behind which `certain` means `sure`."""
_ABOUT = frozenset("~≈∼")
_SIGN = re.compile(r"[~≈∼/]")
_FILLERS_AT = frozenset(["both", "to", "from"])
"""Words that do not count in some places."""
_MAX_BETWEEN = 6
"""Most words between those of a pair such as `both` and `and`."""
_MAX_PHRASE = max(map(len, PHRASES))
_FIRST_WORDS = frozenset(phrase[0] for phrase in PHRASES)


@dataclass(frozen=True, slots=True)
class Word:
    """A word in the form in which it is compared."""

    stem: str
    is_past: bool
    is_fixed: bool = field(compare=False)
    """A number, a unit or a negation, which has no synonyms."""


class Key(NamedTuple):
    """The content of a sentence; sentences with equal keys say the same."""

    words: tuple[Word, ...]
    attributed_to: tuple[int, ...]
    """Numbers of the passages that it names."""


def key(sentence: Sentence) -> Key:
    """Return the key of a sentence."""
    start, end = (sentence.start + at for at in claim(sentence.text))
    tokens = [token for token in sentence.tokens if start <= token.start < end]
    signs = _signs(tokens, sentence.text, sentence.start)
    return Key(tuple(_words(tokens, signs)), named_passages(sentence.text))


def is_same(one: Key, other: Key) -> bool:
    """Return whether two sentences say the same, word by word."""
    return (
        one.attributed_to == other.attributed_to
        and len(one.words) == len(other.words)
        and all(map(_same_word, one.words, other.words))
    )


def _signs(tokens: list[Token], text: str, offset: int) -> dict[int, Word]:
    """Return the words for the signs before tokens, by the token's place: `~5`, `oven/grill`."""
    found = dict[int, Word]()
    if _SIGN.search(text) is None:
        return found
    for at, token in enumerate(tokens):
        before = text[max(token.start - offset - 1, 0) : token.start - offset]
        if before in _ABOUT and token.form.is_number:
            found[at] = Word("about", is_past=False, is_fixed=False)
        elif before == "/" and at and not (token.form.is_number or tokens[at - 1].form.is_number):
            found[at] = Word("or", is_past=False, is_fixed=False)
    return found


def _words(tokens: list[Token], signs: Mapping[int, Word]) -> Iterator[Word]:
    at, stems = 0, [token.form.stem for token in tokens]
    while at < len(tokens):
        if at in signs:
            yield signs[at]
        for length in range(_MAX_PHRASE if stems[at] in _FIRST_WORDS else 0, 0, -1):
            phrase = tuple(islice(stems, at, at + length))
            if len(phrase) == length and (instead := PHRASES.get(phrase)):
                is_past = phrase in VERBS and (tokens[at].form.is_past or stems[at] in PAST_FORMS)
                words = [stem for stem in instead if stem not in _FILLERS]
                yield from (Word(w, is_past and not n, w in UNITS) for n, w in enumerate(words))
                at += length
                break
        else:
            form = tokens[at].form
            if form.stem == _CERTAIN and _is_some(tokens, at):
                yield Word("some", is_past=False, is_fixed=False)
            elif form.stem not in _FILLERS and not _is_filler_at(tokens, at):
                fixed = form.is_number or form.is_negator or form.stem in UNITS
                yield Word(form.stem, form.is_past, fixed)
            at += 1


def _is_filler_at(tokens: list[Token], at: int) -> bool:
    """Return whether a word may be left out: `both ... and`, and `to` and `from` of a range."""
    stem = tokens[at].form.stem
    if stem not in _FILLERS_AT:
        return False
    behind = [token.form for token in tokens[at + 1 : at + 1 + _MAX_BETWEEN]]
    if stem == "both":
        return any(word.stem == "and" for word in behind)
    if not behind or not behind[0].is_number:
        return False
    if stem == "to":
        before = [token.form for token in tokens[max(at - 3, 0) : at]]
        ends = bool(before) and (before[-1].is_number or before[-1].stem in UNITS)
        return ends and any(word.is_number for word in before)
    return any(
        later.is_number and (word.stem == "to" or word.is_number)
        for word, later in pairwise(behind)
    )


def _is_some(tokens: list[Token], at: int) -> bool:
    """Return whether `certain` stands before what it counts, as in `certain rooms`."""
    before = tokens[at - 1].form.stem if at else ""
    behind = tokens[at + 1].form if at + 1 < len(tokens) else None
    return before not in _SURE and behind is not None and behind.is_content


def _same_word(one: Word, other: Word) -> bool:
    if one.stem == other.stem:
        return one.is_past == other.is_past
    if one.is_fixed or other.is_fixed or one.is_past != other.is_past:
        return False
    return other.stem in synonyms_of(one.stem) and other.stem not in opposites().get(one.stem, ())
