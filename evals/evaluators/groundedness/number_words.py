"""Join numbers of several words: `two hundred and five`, `1.5 million`, `6.2M`, `a dozen`."""

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import takewhile

from evals.evaluators.groundedness.lexicon import CURRENCIES, MULTIPLES, NUMBER_WORDS, ORDINALS
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import Token

_MOST_DIGITS = 15
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")
POWER = (
    r"(?<![\d.])(?:(?:(?P<factor>\d+(?:\.\d+)?)\s{0,9}[×*·⋅∙x]\s{0,9})?10"
    r"(?:\s?\^\s?\{?(?P<exponent>[-−]?\d{1,2})\}?|(?P<raised>⁻?[⁰¹²³⁴-⁹]{1,2}))(?!\d)"
    r"|(?P<mantissa>\d+(?:\.\d+)?)[eE](?P<e>[-+−]?\d{1,2})(?!\w))"
)
"""A power of ten, with or without a factor: `6.2 × 10^6`, `6.2e6`."""
_LOWERED = {
    ord(raised): sign for sign, raised in zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", strict=True)
} | {ord("−"): "-"}
_FRACTIONS = {"5": ("1", "2"), "25": ("1", "4"), "75": ("3", "4"), "125": ("1", "8")}
_CURRENCIES = frozenset(CURRENCIES.values())


def joined(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens with each number of several words joined into one token."""
    if not any(t.form.is_number or t.form.stem in _HEADS for t in tokens):
        return tokens
    tokens, found, at = _with_decimals(tokens, text), list[Token](), 0
    while at < len(tokens):
        value, length = _run(tokens, at, text) if _may_begin(tokens, at) else (None, 1)
        if length > 1 and value is not None:
            found.append(_number(tokens[at], tokens[at + length - 1], _written(value)))
        else:
            found += tokens[at : at + max(length, 1)]
        at += max(length, 1)
    return found


def _with_decimals(tokens: list[Token], text: str) -> list[Token]:
    """Join each spelled decimal, such as `six point two five`."""
    if not any(token.form.stem == "point" for token in tokens):
        return tokens
    found, at = list[Token](), 0
    while at < len(tokens):
        whole = digits = ""
        if at + 1 < len(tokens) and tokens[at + 1].form.stem == "point":
            whole = _spelled(tokens[at], text)
        if whole:
            behind = (_spelled(token, text) for token in tokens[at + 2 : at + 2 + _MOST_DIGITS])
            digits = "".join(takewhile(lambda digit: len(digit) == 1, behind))
        last = at + len(digits) + 1 if digits else at
        found.append(
            _number(tokens[at], tokens[last], f"{whole}.{digits}") if digits else tokens[at]
        )
        at = last + 1
    return found


def _spelled(token: Token, text: str) -> str:
    """Return the digits of a spelled number; empty if the word is none."""
    if text[token.start : token.end].lower() == "one":
        return "1"
    return token.form.stem if _is_spelled(token, text) else ""


def _number(first: Token, last: Token, digits: str) -> Token:
    form = first.form._replace(
        stem=digits, is_content=True, is_number=True, is_negator=False, is_past=False
    )
    return first._replace(form=form, end=last.end, is_name=False)


def _may_begin(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a number of several words may begin at a token."""
    form, is_last = tokens[at].form, at + 1 == len(tokens)
    if is_last or not (form.is_number or form.stem in _HEADS):
        return False
    behind = tokens[at + 1].form
    return behind.is_number or behind.stem in _BEHIND or behind.stem in MULTIPLES


def _run(tokens: Sequence[Token], first: int, text: str) -> tuple[Decimal | None, int]:
    """Return the number that begins at a token, and its length in tokens; `(None, 0)` if none."""
    total, part, last, length = Decimal(0), None, Decimal(0), 0
    at = first
    while at < len(tokens):
        gap = text[tokens[at - 1].end : tokens[at].start] if at > first else ""
        gap = " " if gap and not gap.strip(" ") else gap
        if len(gap.removeprefix("+")) > 1 or gap == "(":  # no number of thousands is `401(k)`
            break
        word = text[tokens[at].start : tokens[at].end].lower().lstrip("$€£¥₹ ")
        if word == "and":
            if last not in _LARGE or at + 1 >= len(tokens) or not _is_spelled(tokens[at + 1], text):
                break
            at += 1
            continue
        value = _value_at(tokens, at, first, word, text)
        scale = _scale(tokens, at, word, text) if at > first else None
        if scale is not None and part is not None:
            part *= scale
            if scale >= 1000:
                total, part = total + part, None
            last = scale
        elif value is not None and _fits(value, part, last, total, word, first=at == first):
            part = (part * 100 if _is_year(part, last, value) else part) + value if part else value
            last = value
        else:
            break
        length = at - first + 1
        at += 1
    return (total + (part or 0), length) if length else (None, 0)


def _fits(
    value: Decimal, part: Decimal | None, last: Decimal, total: Decimal, word: str, *, first: bool
) -> bool:
    """Return whether a value continues the number: tens after hundreds, units after tens."""
    if first:
        return True
    if word[:1].isdigit():
        return False
    if part is None:
        return total > 0
    if last == 100:
        return value < 100
    if 20 <= last < 100 and last % 10 == 0:
        return 0 < value < 10
    return _is_year(part, last, value)


def _is_year(part: Decimal | None, last: Decimal, value: Decimal) -> bool:
    """Return whether two values form a year: nineteen eighty-four."""
    return part == last and 10 < last < 21 and last != 20 and 10 <= value < 100


def _value_at(tokens: Sequence[Token], at: int, first: int, word: str, text: str) -> Decimal | None:
    if at == first and word in ("a", "an"):
        return Decimal(1) if _is_multiple(tokens, at + 1, text) else None
    if word == "one" and (at == first or text[tokens[at - 1].start].isalpha()):
        return Decimal(1)
    if at > first and word in _UNIT_ORDINALS and text[tokens[at - 1].end] == "-":
        return Decimal(_UNIT_ORDINALS[word])
    return _value(tokens[at], word)


def _value(token: Token, word: str) -> Decimal | None:
    if not token.form.is_number:
        return None
    if word.isalpha():
        return Decimal(NUMBER_WORDS[word]) if word in NUMBER_WORDS else None
    stem = token.form.stem
    return Decimal(stem) if len(stem) <= _MOST_DIGITS and _PLAIN.fullmatch(stem) else None


def _scale(tokens: Sequence[Token], at: int, word: str, text: str) -> Decimal | None:
    """Return a word's factor, such as 1000; `M` and `B` count only directly after the digits."""
    token = tokens[at]
    written = text[token.start : token.end]
    is_amount = at > 1 and tokens[at - 2].form.stem in _CURRENCIES
    if written in (("M", "B", "m", "b") if is_amount else ("M", "B")):
        is_near = token.start - tokens[at - 1].end <= is_amount
        return Decimal(10 ** (6 if written in "Mm" else 9)) if is_near else None
    if len(word) <= 2 and token.start - tokens[at - 1].end > 1:
        return None
    scale = MULTIPLES.get(word) or MULTIPLES.get(word.removesuffix("s"))
    return None if scale is None else Decimal(scale)


def fraction(decimal: str) -> tuple[str, ...]:
    """Return the numbers of a decimal that is also written as a fraction: 1.5 is `1 1/2`.

    Empty for any other number.
    """
    whole, _, decimals = decimal.partition(".")
    parts = _FRACTIONS.get(decimals, ())
    return parts if whole == "0" or not parts else (whole, *parts)


def power(written: str) -> str:
    """Return the digits of a power of ten, such as `6.2 × 10^6`, which matches `POWER`."""
    match = re.fullmatch(POWER, written)
    if match is None:
        raise ValueError(f"{written!r} is no power of ten")
    exponent = match["exponent"] or match["raised"] or match["e"]
    factor = Decimal(match["factor"] or match["mantissa"] or 1)
    return _written(factor.scaleb(int(exponent.translate(_LOWERED))))


def _is_spelled(token: Token, text: str) -> bool:
    return token.form.is_number and text[token.start : token.end].isalpha()


def _is_multiple(tokens: Sequence[Token], at: int, text: str) -> bool:
    if at >= len(tokens):
        return False
    word = text[tokens[at].start : tokens[at].end].lower()
    return len(word) > 2 and word in MULTIPLES


def _written(value: Decimal) -> str:
    return f"{value.normalize():f}"


_HEADS = frozenset(["one", "a", "an"])
_BEHIND = frozenset(
    ["and", "b", "first", "second", *map(stem, MULTIPLES), *map(stem, ("m", "meter"))]
)
"""Stems of words that multiply a number or continue it; `m` behind an amount is a million."""
_UNIT_ORDINALS = {"first": 1, "second": 2} | {word: n for word, n in ORDINALS.items() if n < 10}
_LARGE = frozenset(map(Decimal, (100, 1000, 10**6, 10**9)))
