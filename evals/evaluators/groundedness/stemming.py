"""Cut English endings, so that inflected forms of a word are equal."""

import re

_SHORTEST = 3
"""Letters that are left at least."""
_SIBILANT = re.compile(r"(?:ss|x|z|ch|sh)es$")
_NO_PLURAL = ("ss", "us", "is")
_VOWEL = re.compile("[aeiouy]")
_VERB_ENDING = re.compile(r"(?:ed|ing)(?:ly)?$")
_ENDINGS = (
    ("ational", "ate"), ("fulness", "ful"), ("iveness", "ive"), ("ization", "ize"),
    ("isation", "ize"), ("ation", "ate"), ("ness", ""), ("ment", ""), ("ily", "y"),
    ("ion", ""), ("ly", ""),
)  # fmt: skip
_COMPARED = re.compile(r"(.{4,}?)(?:er|est)")


def stem(word: str) -> str:
    """Cut the endings of a plural, of a verb, and of one derived form, in this order.

    `teacher` and `teachers` are equal, and `close`, `closed` and `closing`.
    """
    word = _of_verb(_singular(word))
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word.removesuffix(ending) + instead
            break
    else:
        if compared := _COMPARED.fullmatch(word):
            word = compared[1]
    if len(word) > _SHORTEST and word.endswith(("e", "y")):
        word = word[:-1] + "i" * word.endswith("y")
    return _single(word) if len(word) > _SHORTEST + 1 else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > _SHORTEST + 1:
        return word[:-3] + "y"
    if _SIBILANT.search(word):
        return word[:-2]
    is_plural = word.endswith("s") and not word.endswith(_NO_PLURAL)
    return word[:-1] if is_plural and len(word) > _SHORTEST else word


def _of_verb(word: str) -> str:
    """Cut `ed` and `ing` behind a vowel: `stopped` becomes `stop`, `string` stays."""
    if word.endswith("ied") and len(word) > _SHORTEST + 1:
        return word[:-3] + "y"
    ending = None if word.endswith("eed") else _VERB_ENDING.search(word)
    if ending and _VOWEL.search(word, 0, ending.start()):
        word = word[: ending.start()]
        if len(word) < _SHORTEST:
            return word if word.endswith("o") else f"{word}e"
        word = _single(word) if len(word) > _SHORTEST else word
    agreed = word.endswith("eed") and _VOWEL.search(word, 0, len(word) - len("eed"))
    return word[:-1] if agreed else word


def _single(word: str) -> str:
    """Cut one of two equal consonants at the end."""
    is_double = word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if is_double else word
