"""Compare two sentences up to synonyms, equivalent phrases, filler words and framing."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, product
from typing import NamedTuple

from evals.evaluators.groundedness.alignment import opposites
from evals.evaluators.groundedness.clock_times import HALVES
from evals.evaluators.groundedness.dates import month_first
from evals.evaluators.groundedness.equivalents import PAST_FORMS, PHRASES, VERBS
from evals.evaluators.groundedness.framing import claim
from evals.evaluators.groundedness.number_words import fraction
from evals.evaluators.groundedness.sentences import Sentence, named_passages
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.tokens import DAY_STEMS, NormalForm, Token, synonyms_of
from evals.evaluators.groundedness.word_classes import UNITS

_FILLER_LIST = "a an the that which who whom also and please then per very"
_FILLERS = frozenset(_FILLER_LIST.split())
"""Words that do not count in a comparison."""
_DETERMINERS = frozenset(["this", "these", "those"])
"""Words that say before a noun what `the` says."""
_PERHAPS = frozenset(map(stem, ["potentially", "possibly", "perhaps"]))
_MAY = frozenset(["may", "might", "could"])
"""Words behind which `potentially` adds nothing."""
_SURE_LIST = "is are was were be been am not make makes made for almost quite so"
_SURE = frozenset(_SURE_LIST.split())
"""Words behind which `certain` means `sure`."""
_SIGNS = dict.fromkeys("~≈∼", "about") | {"#": stem("number")}
"""Words for signs before a number."""
_SLASH = "/"
"""Stands between words; of a list's slashes, only the last counts."""
_ALONG, _WITH = "along with", "with"
_READINGS = {_SLASH: "or", _ALONG: _WITH}
"""Words that may also be read as `and`, which does not count."""
_ALONG_WORDS = frozenset(map(stem, ["along", "together"]))
_HOWEVER = re.compile(r"(?<=, )however\b(?=,|[.!?]*$)")
"""Where it says what it says at the beginning."""
_SIGN = re.compile(r"[~≈∼/+#]| or more\b|(?<=[a-z.])\s?[-–]\s?(?=[A-Z])", re.IGNORECASE)
_PLUS = re.compile(r"\d\+(?!\d)")
"""As in `5+` and `500+ million`."""
_NEEDED = frozenset(map(stem, ["need", "require"]))
_AS_NEEDED_LIST = "is are was were be been if as when where the any all"
_AS_NEEDED = frozenset(_AS_NEEDED_LIST.split())
"""Words behind which `needed` means `necessary`."""
_OR_MORE = ["or", "more"]
_TO = frozenset(["to", "until", "till", "through"])
_RANGES = {"from": _TO, "between": frozenset(["to", "and"])}
"""Words before a range of numbers, and those within it."""
_DASHES = frozenset("-–—")
_ENDS = HALVES | frozenset(UNITS)
"""Words behind the first number of a range."""
_SIZES = frozenset(["x", "by"])
"""Words between two sizes, as in `5 x 7`."""
_FILLERS_AT = frozenset(["both", "on", *_TO, *_RANGES, *_SIZES, *_DETERMINERS, *_PERHAPS])
_FILLERS_AT |= _ALONG_WORDS
"""Words that do not count in some places."""
_DAYS = DAY_STEMS | frozenset(map(stem, ["weekdays", "weekends"]))
_MAX_BETWEEN = 6
"""Most words between those of a pair such as `both` and `and`."""
_MAX_PHRASE = max(map(len, PHRASES))
_FIRST_WORDS = frozenset(phrase[0] for phrase in PHRASES)


@dataclass(frozen=True, slots=True)
class Word:
    """A word in the form in which it is compared."""

    stem: str
    is_past: bool = False
    is_fixed: bool = field(default=False, compare=False)
    """A number, a unit or a negation, which has no synonyms."""


class _WordPlace(NamedTuple):
    """A word and its neighbours; a form without a stem stands for none."""

    form: NormalForm
    before: NormalForm
    behind: NormalForm


class Key(NamedTuple):
    """The content of a sentence; sentences with equal keys say the same."""

    words: tuple[Word, ...]
    attributed_to: tuple[int, ...]
    """Numbers of the passages that it names."""


def key(sentence: Sentence) -> Key:
    """Return the key of a sentence."""
    start, end = (sentence.start + at for at in claim(sentence.text))
    comments = {sentence.start + match.start() for match in _HOWEVER.finditer(sentence.text)}
    tokens = [t for t in sentence.tokens if start <= t.start < end and t.start not in comments]
    tokens = month_first(tokens)
    tokens, signs = _with_signs(tokens, sentence.text, sentence.start)
    return Key(tuple(_words(tokens, signs)), named_passages(sentence.text))


def is_same(one: Key, other: Key) -> bool:
    """Return whether two sentences say the same, word by word."""
    return one.attributed_to == other.attributed_to and any(
        len(words) == len(theirs) and all(map(_same_word, words, theirs))
        for words, theirs in product(_spelled_out(one.words), _spelled_out(other.words))
    )


def _spelled_out(words: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
    """Yield the words with those of `_READINGS` as they are there, and as `and`."""
    if _READINGS.keys().isdisjoint(word.stem for word in words):
        yield words
        return
    yield tuple(replace(word, stem=_READINGS.get(word.stem, word.stem)) for word in words)
    yield tuple(word for word in words if word.stem not in _READINGS)


def _with_signs(
    tokens: list[Token], text: str, offset: int
) -> tuple[list[Token], dict[int, tuple[str, ...]]]:
    """Return the words without `or more`, and the words for signs before one, by its place.

    Such as `about` for `~5`, `at least` for `5+` and `5 or more`, and the slash of `oven/grill`.
    """
    if _SIGN.search(text) is None:
        return tokens, {}
    kept, found, at = list[Token](), dict[int, tuple[str, ...]](), 0
    while at < len(tokens):
        token = tokens[at]
        begin, end = token.start - offset, token.end - offset
        before = text[max(begin - 1, 0) : begin]
        behind = [later.form.stem for later in tokens[at + 1 : at + 4]]
        units = 1 if behind[1:] == _OR_MORE else 0
        or_more = token.form.is_number and behind[units : units + 2] == _OR_MORE
        if or_more or (token.form.is_number and _PLUS.search(text, begin, end + 1)):
            found[len(kept)] = ("at", "least")
        elif token.form.is_number and before in _SIGNS:
            found[len(kept)] = (_SIGNS[before],)
        elif (
            before in _DASHES
            and at
            and DAY_STEMS.issuperset((tokens[at - 1].form.stem, token.form.stem))
        ):
            found[len(kept)] = ("to",)
        elif before == "/" and at and not _is_rate(tokens[at - 1], token):
            goes_on = text[end : end + 1] == "/"
            found[len(kept)] = () if goes_on else (_SLASH,)
        if or_more:
            kept += tokens[at : at + 1 + units]
            at += 1 + units + len(_OR_MORE)
        else:
            kept.append(token)
            at += 1
    return kept, found


def _is_rate(one: Token, other: Token) -> bool:
    """Return whether a slash between words stands for `per`, or is part of a number."""
    is_number = one.form.is_number or other.form.is_number
    return is_number or other.form.stem in UNITS or other.form.stem == "h"


def _words(tokens: list[Token], signs: Mapping[int, tuple[str, ...]]) -> Iterator[Word]:
    at, stems = 0, [token.form.stem for token in tokens]
    while at < len(tokens):
        for sign in signs.get(at, ()):
            yield Word(sign)
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
            if form.stem not in _FILLERS and not _is_filler_at(tokens, at):
                fixed = form.is_number or form.is_negator or form.stem in UNITS
                numbers = fraction(form.stem) if form.is_number else ()
                yield from (Word(number, is_fixed=True) for number in numbers)
                if not numbers:
                    yield _by_place(tokens, at) or Word(form.stem, form.is_past, fixed)
            at += 1


def _by_place(tokens: list[Token], at: int) -> Word | None:
    """Return the word for one whose meaning its place tells, such as `certain` or `second`."""
    meant = _MEANT.get(tokens[at].form.stem)
    if meant is None:
        return None
    is_meant, word = meant
    return word if is_meant(_place(tokens, at)) else None


def _is_filler_at(tokens: list[Token], at: int) -> bool:
    """Return whether a word adds nothing in its place.

    So do `both` before `and`, the words of a range of numbers, `this` before a noun, `potentially`
    behind `may`, and `along` before `with`.
    """
    stem = tokens[at].form.stem
    if stem not in _FILLERS_AT:
        return False
    if stem in _ADDS_NOTHING:
        return _ADDS_NOTHING[stem](_place(tokens, at))
    before = [token.form for token in tokens[max(at - _MAX_BETWEEN, 0) : at]]
    behind = [token.form for token in tokens[at + 1 : at + 1 + _MAX_BETWEEN]]
    if stem == "both":
        return any(word.stem == "and" for word in before + behind)
    if stem in ("on", "from") and behind and behind[0].stem in _DAYS:
        return True
    is_size = stem in _SIZES and bool(before) and before[-1].is_number
    is_before_number = bool(behind) and behind[0].is_number
    return is_before_number and (is_size or _is_of_a_range(stem, before, behind))


def _is_of_a_range(stem: str, before: Sequence[NormalForm], behind: Sequence[NormalForm]) -> bool:
    """Return whether a word before a number is one of a range's, as in `between 6 and 9`."""
    if stem in _RANGES:
        return any(
            later.is_number and (word.stem in _RANGES[stem] or word.is_number)
            for word, later in pairwise(behind)
        )
    ends = bool(before) and (before[-1].is_number or before[-1].stem in _ENDS)
    return stem in _TO and ends and any(word.is_number for word in before[-3:])


def _same_word(one: Word, other: Word) -> bool:
    if one.stem == other.stem:
        return one.is_past == other.is_past
    if one.is_fixed or other.is_fixed or one.is_past != other.is_past:
        return False
    return other.stem in synonyms_of(one.stem) and other.stem not in opposites().get(one.stem, ())


def _place(tokens: list[Token], at: int) -> _WordPlace:
    before = tokens[at - 1].form if at else _NONE
    behind = tokens[at + 1].form if at + 1 < len(tokens) else _NONE
    return _WordPlace(tokens[at].form, before, behind)


_NONE = NormalForm("", is_content=False)
_ADDS_NOTHING: Mapping[str, Callable[[_WordPlace], bool]] = {
    **dict.fromkeys(_DETERMINERS, lambda place: place.behind.is_content),
    **dict.fromkeys(_PERHAPS, lambda place: place.before.stem in _MAY),
    **dict.fromkeys(_ALONG_WORDS, lambda place: place.behind.stem == _WITH),
}
"""Between which words these add nothing."""
_NECESSARY = Word(stem("necessary"))
_TWO = Word("2", is_fixed=True)
_MEANT: Mapping[str, tuple[Callable[[_WordPlace], bool], Word]] = {
    "x": (lambda p: p.before.is_number, Word(stem("times"))),
    "h": (lambda p: p.before.stem in UNITS, Word("hour", is_fixed=True)),
    "certain": (lambda p: p.before.stem not in _SURE and p.behind.is_content, Word("some")),
    **dict.fromkeys(
        _NEEDED,
        (lambda p: p.form.is_past and p.before.stem in _AS_NEEDED, _NECESSARY),
    ),
    "through": (lambda p: p.before.stem in DAY_STEMS, Word("to")),
    "second": (lambda p: not p.before.is_number, _TWO),
    "both": (lambda _: True, _TWO),
    "as": (lambda p: p.before == _NONE, Word("because")),
    "can": (lambda p: not p.behind.is_negator, Word("may")),
    _WITH: (lambda p: p.before.stem in _ALONG_WORDS, Word(_ALONG)),
}
"""Words that mean another between some words: between which ones, and the other word."""
