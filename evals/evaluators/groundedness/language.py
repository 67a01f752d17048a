"""Detect text that is not English, on which alone the model was trained and measured."""

import re
from collections.abc import Callable, Sequence

from evals.evaluators.groundedness.lexicon import FOREIGN_FUNCTION_WORDS, STOP_WORDS
from evals.evaluators.groundedness.tokens import form_of
from evals.evaluators.groundedness.words import known_stems

_LETTERS = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"[^.!?\n。！？]+")
_ACCENTED = re.compile("[\u00df-\u00f6\u00f8-\u024f]")
_RARELY = 4
"""Accents count only in one of so many words at least: English has them in names."""
_FEWEST_WORDS = 3
_SHORT = 6
"""In a sentence with fewer words, content words are looked at too."""
_READ_CHARACTERS = 4_000
_OF_BOTH_LIST = "a i an as at do en he in is it me no on or so us was were"
_OF_BOTH = frozenset(_OF_BOTH_LIST.split())
"""English function words that other languages have too."""
_ENGLISH_ALONE = STOP_WORDS - FOREIGN_FUNCTION_WORDS
_NAME_PARTS = """
al da dal dalla de dei del della den der des di do dos du el elle la las le les los sia solo son uma
van von
"""
_IN_NAMES = frozenset(_NAME_PARTS.split())
"""Function words that names begin with."""
_ENDING = re.compile(
    r".{3,}(?:lich|liche|lichen|ivo|iva|ción|cion|mente|ado|ados|adas|ato|ati|ido|idos|idas|ero|eros|euse"
    r"|ités?|ées?|zione|zioni|iamo|ità|mento|mentos|menti|ção|ções|ência|tijd|lijk|eerd)"
)
"""Words with an ending of other languages with Latin letters; only a few are English."""
_GERMAN_NOUN = re.compile(r".{4,}(?:ung|ungen|keit|heit|schaft)")
_NOT_ENGLISH = "the answer is not in English, which this evaluator was trained and measured on"


def why_unreadable(text: str, is_known: Callable[[str], bool] = lambda _: False) -> str | None:
    """Return why an answer's language prevents judging it; `None` if it can be judged.

    It can be judged if at least half of its letters are in English sentences. A few words can be
    if no more mark another language than are English or, such as words of the passages, `is_known`.
    """
    if (is_other := _few_words_are_foreign(text, is_known)) is not None:
        return _NOT_ENGLISH if is_other else None
    every = foreign = 0
    for match in _SENTENCE.finditer(text[:_READ_CHARACTERS]):
        count = sum(map(len, _LETTERS.findall(match.group())))
        every += count
        foreign += count * is_foreign(match.group())
    return _NOT_ENGLISH if foreign > every / 2 else None


def is_foreign(sentence: str) -> bool:
    """Return whether a sentence is not English; False for one word of Latin letters."""
    written = _LETTERS.findall(sentence)
    words = [word.lower() for word in written]
    letters = "".join(words)
    is_ascii = letters.isascii()
    if not is_ascii and sum(letter < "\u0250" for letter in letters) < len(letters) / 2:
        return True
    foreign = sum(
        word in FOREIGN_FUNCTION_WORDS and _is_function_word(written, at)
        for at, word in enumerate(words)
    )
    accented = 0 if is_ascii else sum(map(_is_accented, written))
    foreign += accented if accented * _RARELY >= len(words) else 0
    if len(words) < _FEWEST_WORDS:
        return len(words) > 1 and foreign == len(words)
    english = sum(word in _ENGLISH_ALONE for word in words)
    if len(words) >= _SHORT and foreign > english:
        return True
    if foreign == 0 or any(word in STOP_WORDS and word not in _OF_BOTH for word in words):
        return False
    others = [w for w in words if w not in FOREIGN_FUNCTION_WORDS and w not in _OF_BOTH]
    unknown = sum(form_of(word).stem not in _known() for word in others)
    return 2 * unknown >= len(others)


def _few_words_are_foreign(text: str, is_known: Callable[[str], bool]) -> bool | None:
    """Return whether a few words are of another language; `None` if they do not tell.

    Those of the passages are not. Names tell nothing.
    """
    written = _LETTERS.findall(text[:_READ_CHARACTERS])
    if not 1 < len(written) < _SHORT:
        return None
    readable = [_is_english(word) or is_known(form_of(word).stem) for word in written]
    if all(readable):
        return False
    foreign = [_marks_another(written, at) for at in range(len(written))]
    others = sum(
        readable[at] and not foreign[at] and word.lower() not in _OF_BOTH
        for at, word in enumerate(written)
    )
    if sum(foreign) > others:
        return True
    return None if any(readable) or not any(word.islower() for word in written[1:]) else True


def _marks_another(written: Sequence[str], at: int) -> bool:
    """Return whether a word is a function word, or has an ending, of another language."""
    word = written[at].lower()
    if word in STOP_WORDS and word not in _OF_BOTH:
        return False
    if _GERMAN_NOUN.fullmatch(word) and form_of(word).stem not in _known():
        return True
    if written[at] != word and at > 0:
        return False
    if word in FOREIGN_FUNCTION_WORDS - _OF_BOTH:
        return len(word) > 1 and _is_function_word(written, at)
    if written[at] != word and _begins_a_name(written, at):
        return False
    return _ENDING.fullmatch(word) is not None and form_of(word).stem not in _known()


def _is_english(word: str) -> bool:
    lower = word.lower()
    is_function_word = lower in STOP_WORDS and lower not in _OF_BOTH
    return is_function_word or form_of(word).stem in _known()


def _is_function_word(written: Sequence[str], at: int) -> bool:
    """Return whether a word is a function word of another language, and not part of a name."""
    word = written[at].lower()
    if word not in FOREIGN_FUNCTION_WORDS:
        return False
    if len(word) == 1:
        return written[at] == word
    if len(written) < _SHORT and word in _IN_NAMES and _leads_to_a_name(written, at):
        return False
    return (at == 0 and word not in _IN_NAMES) or not _begins_a_name(written, at)


def _is_accented(word: str) -> bool:
    """Return whether a word that English lacks has a letter with an accent; names do not count."""
    is_found = _ACCENTED.search(word) is not None and word.islower()
    return is_found and form_of(word).stem not in _known()


def _begins_a_name(written: Sequence[str], at: int) -> bool:
    """Return whether a word is capitalized like the next one, as in `Las Vegas`."""
    return at + 1 < len(written) and written[at][0].isupper() and written[at + 1][0].isupper()


def _leads_to_a_name(written: Sequence[str], at: int) -> bool:
    """Return whether a name follows, also behind other words that names begin with."""
    following = next((w for w in written[at + 1 :] if w.lower() not in _IN_NAMES), "")
    return following[:1].isupper()


def _known() -> frozenset[str]:
    return known_stems(_stem_of)


def _stem_of(word: str) -> str:
    return form_of(word).stem
