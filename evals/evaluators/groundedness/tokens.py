"""Split a text into words, in the normalized form in which answers and passages are compared."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from evals.evaluators.groundedness import clock_times, dates, number_words, signs
from evals.evaluators.groundedness.lexicon import (
    CONTRACTED,
    CURRENCIES,
    DAYS,
    DECADES,
    MONTHS,
    NEGATORS,
    NUMBER_WORDS,
    ORDINALS,
    ROMAN,
    ROMAN_LETTERS,
    STOP_WORDS,
    UNITS_SHORT,
)
from evals.evaluators.groundedness.plain import plain
from evals.evaluators.groundedness.quantities import RAISED
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import NormalForm, Token
from evals.evaluators.groundedness.verb_forms import in_context
from evals.evaluators.groundedness.words import (
    associates,
    base_forms,
    irregular_pasts,
    relatives,
    synonyms,
)

__all__ = [
    "DAY_STEMS",
    "YEAR",
    "NormalForm",
    "Token",
    "associates_of",
    "form_of",
    "relatives_of",
    "synonyms_of",
    "tokens_of",
]

_LOOSE = "\u0300-\u036f\u00ad\u200b-\u200d\u2060\ufeff"
"""Characters within a word that are invisible, or combine with the letter before them."""
_LETTERS = rf"[^\W\d_](?:[{_LOOSE}]*[^\W\d_])*[{_LOOSE}]*"
_DIGITS = rf"\d(?:[{_LOOSE}]*\d)*"
_TOKEN = re.compile(
    r"(?=\d)(?:(?P<date>(?<![\d./-])(?:[12]\d{3}([./-])\d{1,2}\2\d{1,2}|\d{1,2}([./-])\d{1,2}\3[12]\d{3}"
    rf"|\d{{1,2}}/\d{{1,2}}/\d\d|{dates.MONTH_AND_YEAR})(?![\d/-]|[.]\d))"
    rf"|(?P<time>{clock_times.TIME})|(?P<power>{number_words.POWER})"
    r"|(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d,]|[ .-]\d)"
    r"|\d{1,3}(?:(?:\{,\}|\\,|['’])\d{3})+(?!\d))"
    rf"|(?=[^a-zA-Z\s]|(?<=\d)|No)(?P<sign>{signs.SIGN})"
    r"|(?<![^\s($~≈-])\.\d+(?![\d.,]*[.,]\d)"
    rf"|{_DIGITS}(?:[{_LOOSE}]*[.,][{_LOOSE}]*{_DIGITS})*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    rf"|{_LETTERS}(?:['’]{_LETTERS})*|%|[$€£¥₹](?=\s?\.?\d)|(?<=\d)\s?[€£¥₹]"
    r"|(?<=\s)&(?=\s)"
)
_BOUNDARY = re.compile(r"[.!?:;*•\n\"“]")
"""Characters after which a capital does not show a name."""
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_INVISIBLE = re.compile(f"[{_LOOSE}]")
_PLAIN_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
)
"""Latin letters that are no letter with an accent, as one writes them in English."""
_BETWEEN_DIGITS = re.compile(r"[ '’\\{}]|(?<=\{),(?=\})")
_CONTRACTION = re.compile(r"(.+)n't|(.+)'(re|ve|ll|m|d|s)")
_MOST_BETWEEN = 5
"""Most characters between a number and its unit, as in `**40** °C`."""
_FRACTIONS = {sign: unicodedata.normalize("NFKC", sign).split("⁄") for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"}
_FEET = re.compile(r"\d\s?(?:ft|feet|foot)\.?,?\s?\d{1,2}\s?\Z")
_FULL_STOP = re.compile(r"\.(?=\s*[a-z(),;:x×])")
"""A full stop that ends no sentence, as in `13 in. wide`."""
_SUFFIXES = frozenset(["st", "nd", "rd", "th"])
_WITH_IS = frozenset(
    ["it", "that", "there", "he", "she", "what", "who", "where", "here", "how", "this"]
)
"""Words after which `'s` is the verb `is`."""
_NUMBERS = NUMBER_WORDS | ORDINALS
_SYMBOLS = CURRENCIES | dict.fromkeys(["%", "percent", "pct"], "percent") | {"&": "and"}
_CURRENCIES = frozenset(CURRENCIES.values())
_LONG_UNITS = {
    stem("degree"): {
        "f": "fahrenheit", "fahrenheit": "fahrenheit",
        "c": "celsius", "celsius": "celsius", "centigrade": "celsius",
    },
    "per": {"cent": "percent"},
}  # fmt: skip
"""Units of two words, by the stem of the first and the second."""
_NUMBERED_LIST = "war type part title phase level class chapter section volume act stage grade"
_NUMBERED = frozenset(map(stem, _NUMBERED_LIST.split()))
"""Words before a roman numeral of one letter."""
DAY_STEMS = frozenset(map(stem, DAYS.values()))
_NO_DAYS = frozenset(["Sat", "Sun"])
"""Abbreviations that are days only behind another day, as in `Fri-Sun`, or as a weekend."""
_WEEKEND = re.compile(r"\bSat\b\.?,?\s?(?:and|or|&|to|through|[-–/])\s?Sun\b")
_AROUND = len(". through Sun.")
"""Characters on either side of a day that are searched for the other day of a weekend."""
_NEAR = len(" - ")
_CENTS = frozenset(["cent", "penni"])
"""Stems of hundredths of a currency's unit."""
YEAR, _TWO_DIGITS = re.compile(r"1\d\d\d|20\d\d"), re.compile(r"\d\d")
_DASH, _GOES_ON = re.compile(r"[-/]|\s?(?:--|[–—])\s?"), re.compile(r"[-–/.,]\d|\s?[%=]")
_MAX_DIGITS = 40


def tokens_of(text: str) -> list[Token]:
    """Return the words of a text; a number of several words becomes one token."""
    text, found, before = plain(text), list[Token](), 0
    for match in _TOKEN.finditer(text):
        word, (start, end) = match.group().strip(), match.span()
        if match["date"]:
            found += dates.date_tokens(word, start)
        elif match["time"]:
            found += clock_times.time_tokens(word, start)
        elif match["sign"]:
            for said in signs.words(word, text, start):
                found.append(Token(form_of(said), start, end, is_name=False))
        elif match["power"]:
            form = NormalForm(number_words.power(word), is_number=True)
            found.append(Token(form, start, end, is_name=False))
        elif found and word.lower() in _SUFFIXES and _follows(found[-1], start):
            continue
        else:
            found += _of_word(word, start, end, text, before, found[-1] if found else None)
        before = end
    joined = number_words.joined(_with_long_units(found, text), text)
    return in_context(_with_cents(_with_currencies_behind(joined)))


def _with_long_units(tokens: list[Token], text: str) -> list[Token]:
    """Join `degrees Fahrenheit` and `degrees F` to one unit, as in `°F`, and `per cent`."""
    found = list[Token]()
    for token in tokens:
        last = found[-1] if found else None
        units = _LONG_UNITS.get(last.form.stem, {}) if last else {}
        unit = units.get(text[token.start : token.end].lower()) if units else None
        if last and unit and text[last.end : token.start].strip() in ("", "-"):
            found[-1] = Token(form_of(unit), last.start, token.end, is_name=False)
        else:
            found.append(token)
    return found


def _with_currencies_behind(tokens: list[Token]) -> list[Token]:
    """Move each currency symbol behind its number, as in `48 euros`."""
    for at, (one, other) in enumerate(pairwise(tokens)):
        is_before = one.form.stem in _CURRENCIES and other.form.is_number
        if is_before and other.start - one.end <= 1:
            tokens[at] = other._replace(start=one.start)
            tokens[at + 1] = one._replace(start=other.end - 1, end=other.end)
    return tokens


def _with_cents(tokens: list[Token]) -> list[Token]:
    """Join the numbers of each price such as `29 dollars and 40 cents`, as in `29.40 dollars`."""
    found = list[Token]()
    for token in tokens:
        found.append(token)
        if token.form.stem not in _CENTS:
            continue
        has_and = len(found) > 4 and found[-3].form.stem == "and"
        before = found[-5:-1] if has_and else found[-4:-1]
        if len(before) < 3 or not _is_price(before):
            continue
        digits = _number(f"{before[0].form.stem}.{int(before[-1].form.stem):02}")
        form = before[0].form._replace(stem=digits)
        found[-1 - len(before) :] = [
            before[0]._replace(form=form, end=token.end),
            before[1]._replace(start=token.end - 1, end=token.end),
        ]
    return found


def _is_price(tokens: Sequence[Token]) -> bool:
    """Return whether a number, a currency, perhaps `and`, and a number below 100 are a price."""
    whole, currency, *_, cents = tokens
    numbers = whole.form.stem, cents.form.stem
    apart = len(" and ") if len(tokens) > 3 else 1
    is_joined = currency.form.stem in _CURRENCIES and cents.start - currency.end <= apart
    return is_joined and all(map(str.isdecimal, numbers)) and 0 < int(numbers[1][:3]) < 100


def _of_word(
    word: str, start: int, end: int, text: str, before: int, last: Token | None
) -> Iterator[Token]:
    is_name = word[0].isupper() and (
        (end - start > 1 and word.isupper())
        or (before > 0 and _BOUNDARY.search(text, before, start) is None)
    )
    is_inch = word == "in" and (
        _FULL_STOP.match(text, end) or _FEET.search(text[max(start - 16, 0) : start])
    )
    unit = "inch" if is_inch else UNITS_SHORT.get(word)
    if unit and last is not None and _measures(text, last, start):
        yield Token(form_of(unit), start, end, is_name=False)
        return
    stem_before = last.form.stem if last and start - last.end <= _NEAR else ""
    around = text[max(start - _AROUND, 0) : end + _AROUND] if word in _NO_DAYS else ""
    if said := _said(word, stem_before, around):
        yield from (Token(form_of(one), start, end, is_name=word in DAYS) for one in said)
        return
    if last and last.form.is_number and (year := _end_of_years(word, last, text, start)):
        yield Token(form_of(year), start, end, is_name=False)
        return
    if word in _FRACTIONS:
        for digits in _FRACTIONS[word]:
            yield Token(form_of(digits), start, end, is_name=False)
        return
    first, second = _parts(word)
    if second:
        cut = min(start + len(first), end)
        yield Token(form_of(first), start, cut, is_name)
        yield Token(form_of(second), cut, end, is_name=False)
    else:
        yield Token(form_of(word), start, end, is_name)


def _end_of_years(word: str, last: Token, text: str, start: int) -> str:
    """Return the year that two digits behind another year mean, as in `2007-08`, or nothing."""
    first, end = last.form.stem, start + len(word)
    if not _TWO_DIGITS.fullmatch(word) or not YEAR.fullmatch(first):
        return ""
    is_range = _DASH.fullmatch(text[last.end : start]) and not _GOES_ON.match(text, end)
    is_first = last.start == 0 or text[last.start - 1] not in "-–/.,"
    return first[:2] + word if is_range and is_first and word > first[2:] else ""


def _said(word: str, before: str, around: str) -> list[str]:
    """Return the words for a decade, a weekday or a roman numeral.

    `before` is the stem before the word, `around` the text around one of `_NO_DAYS`.
    """
    if decade := DECADES.get(word.lower()):
        return [decade, "decade"]
    is_day = before in DAY_STEMS or word not in _NO_DAYS
    if word in DAYS and (is_day or _WEEKEND.search(around)):
        return [DAYS[word]]
    number = ROMAN.get(word) or (before in _NUMBERED and ROMAN_LETTERS.get(word))
    return [str(number)] if number else []


def _measures(text: str, last: Token, start: int) -> bool:
    """Return whether what begins at `start` is the unit of the last token, a number."""
    is_raised = last.form.stem in RAISED
    between = text[last.end : start].removeprefix("." * is_raised)
    is_beside = len(between) <= _MOST_BETWEEN and not between.strip(" °*_'’")
    return is_beside and (last.form.is_number or is_raised)


def _follows(token: Token, start: int) -> bool:
    """Return whether the token is a number that ends at most one character before `start`."""
    return token.form.is_number and start - token.end <= 1


@lru_cache(maxsize=4096)
def _parts(word: str) -> tuple[str, str]:
    """Split a contraction into two words; the second is empty if the word is no contraction."""
    lower = _INVISIBLE.sub("", word).lower().replace("’", "'")
    if lower in CONTRACTED:
        return CONTRACTED[lower]
    match = _CONTRACTION.fullmatch(lower) if "'" in lower else None
    if match is None:
        return word, ""
    if match[1]:
        return match[1], "not"
    verb = {"re": "are", "ve": "have", "ll": "will", "m": "am", "d": "would", "s": "is"}[match[3]]
    return (word, "") if match[3] == "s" and match[2] not in _WITH_IS else (match[2], verb)


@lru_cache(maxsize=65_536)
def form_of(word: str) -> NormalForm:
    """Return the normalized form of one word."""
    lower = _without_accents(word).lower().replace("’", "'")
    if not lower or lower.removeprefix(".")[0].isdigit():
        return NormalForm(_number(lower), is_number=True)
    if lower in _SYMBOLS:
        return NormalForm(_SYMBOLS[lower], is_content=False)
    negator = lower in NEGATORS or lower.endswith("n't")
    if lower in STOP_WORDS or negator:
        return NormalForm(lower, is_content=False, is_negator=negator)
    if (number := _NUMBERS.get(lower)) is not None:
        return NormalForm(str(number), is_number=True)
    lower = MONTHS.get(lower, lower).removesuffix("'s").removesuffix("s'")
    base = base_forms().get(lower, lower)
    return NormalForm(stem(base_forms().get(base, base)), is_past=_is_past(lower))


def _without_accents(word: str) -> str:
    """Return `Cafe` for `Café`, also without characters that are invisible."""
    if word.isascii():
        return word
    bare = _INVISIBLE.sub("", unicodedata.normalize("NFD", word.translate(_PLAIN_LETTERS)))
    return unicodedata.normalize("NFC", bare)


def _is_past(word: str) -> bool:
    return (word.endswith("ed") and len(word) > 4) or word in irregular_pasts()


@cache
def _by_stem(
    others: Callable[[Callable[[str], str]], dict[str, tuple[str, ...]]],
) -> dict[str, tuple[str, ...]]:
    return others(lambda word: form_of(word).stem)


def synonyms_of(stem: str) -> tuple[str, ...]:
    """Return the stems of a stem's synonyms."""
    return _by_stem(synonyms).get(stem, ())


def relatives_of(stem: str) -> tuple[str, ...]:
    """Return the stems of words that can mean the same as a stem, or something wider."""
    return _by_stem(relatives).get(stem, ())


def associates_of(stem: str) -> tuple[str, ...]:
    """Return the stems of words that a thesaurus lists together with a stem."""
    return _by_stem(associates).get(stem, ())


def _number(text: str) -> str:
    """Return the normalized spelling of a number: 1,000 and 1000.0 are both 1000."""
    text = _BETWEEN_DIGITS.sub("", text)
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    whole, dot, fraction = text[:_MAX_DIGITS].partition(".")
    if "." in fraction or "," in text:
        return text[:_MAX_DIGITS]
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (dot + fraction if fraction else "")
