"""Words of a text in the one form under which answers and passages are compared."""

import re
from functools import lru_cache
from typing import NamedTuple

from evals.evaluators.groundedness.lexicon import (
    MONTHS,
    MULTIPLES,
    NEGATORS,
    NUMBER_WORDS,
    STOP_WORDS,
)

_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*|%"
)
_BOUNDARY = re.compile(r"[.!?:;*•\n\"“]")
"""What makes the next word's capital one of place."""
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_MAX_DIGITS = 40
_ENDINGS = (
    ("ational", "ate"), ("fulness", "ful"), ("iveness", "ive"), ("ization", "ize"),
    ("isation", "ize"), ("ingly", ""),
    ("ation", "ate"), ("edly", ""), ("ness", ""), ("ment", ""),
    ("ies", "y"), ("ied", "y"), ("ily", "y"), ("ing", ""), ("ion", ""),
    ("est", ""), ("ed", ""), ("es", ""), ("er", ""), ("ly", ""), ("s", ""), ("e", ""), ("y", "i"),
)  # fmt: skip


class Form(NamedTuple):
    """What a word is compared by."""

    stem: str
    is_content: bool = True
    is_number: bool = False
    is_negator: bool = False


class Token(NamedTuple):
    """A word in its text."""

    form: Form
    start: int
    end: int
    is_name: bool
    """Written with a capital that its place does not explain."""


def tokens_of(text: str) -> list[Token]:
    """Return the words of a text; spelled and scaled numbers become one number each."""
    found, before = list[Token](), 0
    for match in _TOKEN.finditer(text):
        word, (start, end) = match.group(), match.span()
        is_name = word[0].isupper() and (
            (end - start > 1 and word.isupper())
            or (before > 0 and _BOUNDARY.search(text, before, start) is None)
        )
        found.append(Token(form_of(word), start, end, is_name))
        before = end
    return _with_numbers_joined(found)


@lru_cache(maxsize=65_536)
def form_of(word: str) -> Form:
    """Return the form of one word."""
    lower = word.lower().replace("’", "'")
    if lower[0].isdigit():
        return Form(_number(lower), is_number=True)
    if lower == "%":
        return Form("percent", is_content=False)
    negator = lower in NEGATORS or lower.endswith("n't")
    if lower in STOP_WORDS or negator:
        return Form(lower, is_content=False, is_negator=negator)
    if lower in NUMBER_WORDS:
        return Form(str(NUMBER_WORDS[lower]), is_number=True)
    lower = MONTHS.get(lower, lower)
    return Form(_stem(lower.removesuffix("'s")))


def _number(text: str) -> str:
    """Return one spelling of a number: 1,000 and 1000.0 are both 1000."""
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    whole, dot, fraction = text[:_MAX_DIGITS].partition(".")
    if "." in fraction or "," in text:
        return text[:_MAX_DIGITS]
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (dot + fraction if fraction else "")


def _stem(word: str) -> str:
    """Cut common English endings, so that `closes`, `closed` and `closing` are one."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + instead
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word


def _with_numbers_joined(tokens: list[Token]) -> list[Token]:
    """Join `twenty five`, `1.5 million` and `one thousand` into single numbers."""
    joined: list[Token] = []
    for token in tokens:
        value = _joined_value(joined[-1], token) if joined else None
        if value is None:
            joined.append(token)
        else:
            before = joined.pop()
            form = Form(value, is_number=True)
            joined.append(Token(form, before.start, token.end, is_name=False))
    return joined


def _joined_value(before: Token, token: Token) -> str | None:
    if token.start - before.end > 1 or not (before.form.is_number or before.form.stem == "one"):
        return None
    scale = _SCALES.get(token.form.stem)
    head = "1" if before.form.stem == "one" else before.form.stem
    if scale is not None and len(head) <= 15 and head.count(".") < 2 and "," not in head:
        return f"{float(head) * scale:.10g}" if "." in head else str(int(head) * scale)
    tens = before.form.stem in _TENS and before.end - before.start > 2
    units = token.form.stem in _UNITS and token.end - token.start > 2
    return str(int(before.form.stem) + int(token.form.stem)) if tens and units else None


_SCALES = {_stem(word): scale for word, scale in MULTIPLES.items()}
_TENS = frozenset(str(10 * n) for n in range(2, 10))
_UNITS = frozenset(str(n) for n in range(1, 10))
