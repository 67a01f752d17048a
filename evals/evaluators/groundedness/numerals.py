"""Sort out absent numbers that claim nothing: the question's, list labels, centuries."""

import re
from collections.abc import Sequence

from evals.evaluators.groundedness.dates import months_of_dates
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.question import Question
from evals.evaluators.groundedness.sentences import Sentence
from evals.evaluators.groundedness.tokens import YEAR, Token

_REACH = 40
"""Characters around a number that are searched for its label."""
_SPELLED = frozenset({"0", "1", "2"})
"""Numbers spelled as words that often count nothing in the passages: the two ways, zero in on."""
_LABEL = re.compile(
    r"\b(?:steps?|stages?|phases?|parts?|questions?|q|facts?|points?|items?|options?|methods?"
    r"|tips?|rules?|notes?|examples?|numbers?|no\.)\s*#?"
    r"(?:\d{1,2}\s*(?:,|and|&|to|-|–|through|or)\s*)*$",
    re.IGNORECASE,
)
"""Labels of the answer's own items: Step 3, Repeat steps 5 and 6, Q2."""
_FRACTION = re.compile(r"(?<![\d/.])(?:24/7|1/(?:[2-9]|1[0-6])|[2-9]/(?:[3-9]|1[0-6]))(?![\d/])")
"""Fractions of small numbers, which are not dates; and 24/7."""
_CENTURY = re.compile(r"(?:st|nd|rd|th)[-\s]+centur", re.IGNORECASE)


def unexplained(
    sentence: Sentence, absent: Sequence[Token], text: str, passages: Passages, question: Question
) -> tuple[Token, ...]:
    """Return the numbers among the absent words that nothing explains.

    `text` is the whole answer. A number is explained if the question contains it, if it labels one
    of the answer's own steps, if it is part of a fraction (which has several spellings), or if it
    names the century or decade of a year in the passages. Spelled 0, 1 and 2 are explained too.
    The month of a date counts as a number.
    """
    months = months_of_dates(sentence.tokens)
    return tuple(
        token
        for token in absent
        if (token.form.is_number and not _explained(token, sentence, text, passages, question))
        or (token in months and token.form.stem not in question.stems)
    )


def _explained(
    token: Token, sentence: Sentence, text: str, passages: Passages, question: Question
) -> bool:
    number, after = token.form.stem, text[token.end : token.end + _REACH]
    before = text[max(token.start - _REACH, sentence.start) : token.start]
    if text[token.end - 1].lower() == "s" and YEAR.fullmatch(number):
        known = any(year[:3] == number[:3] for year in _years(passages))
    elif text[token.start].isalpha():
        known = number in _SPELLED and not text[token.start : token.end].isupper()
    elif before.endswith("/") or after.startswith("/"):
        near = text[max(token.start - _REACH, 0) : token.end + _REACH]
        at = token.start - max(token.start - _REACH, 0)
        known = any(m.start() <= at < m.end() for m in _FRACTION.finditer(near))
    elif _CENTURY.match(after):
        known = any(str((int(year) - 1) // 100 + 1) == number for year in _years(passages))
    else:
        known = _LABEL.search(before) is not None
    return known or number in question.numbers


def _years(passages: Passages) -> list[str]:
    return [stem for stem in passages.ids if YEAR.fullmatch(stem)]
