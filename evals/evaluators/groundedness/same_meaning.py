"""Compare two sentences up to synonyms, equivalent phrases and filler words."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from evals.evaluators.groundedness.alignment import opposites
from evals.evaluators.groundedness.equivalents import PAST_FORMS, PHRASES, VERBS
from evals.evaluators.groundedness.sentences import Sentence, named_passages
from evals.evaluators.groundedness.tokens import Token, synonyms_of
from evals.evaluators.groundedness.word_classes import UNITS

_FILLERS = frozenset(["a", "an", "the", "that", "also", "please", "then", "per"])
"""Words that do not count in a comparison."""
_CERTAIN = "certain"
_SURE_LIST = "is are was were be been am not make makes made for almost quite so"
_SURE = frozenset(_SURE_LIST.split())
"""Words behind which `certain` means `sure`."""
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
    return Key(tuple(_words(sentence.tokens)), named_passages(sentence.text))


def is_same(one: Key, other: Key) -> bool:
    """Return whether two sentences say the same, word by word."""
    return (
        one.attributed_to == other.attributed_to
        and len(one.words) == len(other.words)
        and all(map(_same_word, one.words, other.words))
    )


def _words(tokens: list[Token]) -> Iterator[Word]:
    at, stems = 0, [token.form.stem for token in tokens]
    while at < len(tokens):
        for length in range(_MAX_PHRASE if stems[at] in _FIRST_WORDS else 0, 0, -1):
            phrase = tuple(islice(stems, at, at + length))
            if len(phrase) == length and (instead := PHRASES.get(phrase)):
                is_past = phrase in VERBS and (tokens[at].form.is_past or stems[at] in PAST_FORMS)
                words = [stem for stem in instead if stem not in _FILLERS]
                yield from (Word(w, is_past and not n, is_fixed=False) for n, w in enumerate(words))
                at += length
                break
        else:
            form = tokens[at].form
            if form.stem == _CERTAIN and _is_some(tokens, at):
                yield Word("some", is_past=False, is_fixed=False)
            elif form.stem not in _FILLERS:
                fixed = form.is_number or form.is_negator or form.stem in UNITS
                yield Word(form.stem, form.is_past, fixed)
            at += 1


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
