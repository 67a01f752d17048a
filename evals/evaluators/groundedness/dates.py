"""Dates in digits: `2014-03-05`, `5.3.2014`, `03/2014`, and `05/03/2014` of either order."""

import re
from collections.abc import Iterator, Sequence

from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import NormalForm, Token

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
STEMS = (*map(stem, _MONTHS[:4]), "may", *map(stem, _MONTHS[5:]))
"""The stems of the months' names."""
_LAST_DAY = 31
MONTH_AND_YEAR = r"(?:0[1-9]|1[0-2])/(?:19|20)\d\d"
_MONTH_AND_YEAR = re.compile(MONTH_AND_YEAR)

Date = tuple[str, str]
"""Stems of a month and a day."""


def date_tokens(text: str, start: int) -> Iterator[Token]:
    """Yield month, day and year of a date at `start`, or its numbers if it is none."""
    if _MONTH_AND_YEAR.fullmatch(text):
        named, _, year = text.partition("/")
        yield Token(_month(int(named)), start, start + len(text), is_name=False)
        yield Token(_number(year), start, start + len(text), is_name=False)
        return
    found = _read(text)
    if found is None:
        for piece in re.finditer(r"\d+", text):
            begin = start + piece.start()
            yield Token(_number(piece.group()), begin, begin + len(piece.group()), is_name=False)
        return
    month, day, year, is_either = found
    end = start + len(text)
    others = (STEMS[day - 1], str(month)) if is_either else ("", "")
    yield Token(_month(month), start, end, is_name=False, other=others[0])
    yield Token(_number(str(day)), start, end, is_name=False, other=others[1])
    yield Token(_number(year), start, end, is_name=False)


def _read(text: str) -> tuple[int, int, str, bool] | None:
    """Return month, day, year, and whether month and day may be exchanged; `None` if no date."""
    first, second, third = re.split(r"[./-]", text)
    if len(first) == 4:
        year, month, day = first, int(second), int(third)
    else:
        month, day, year = int(first), int(second), third
        if "." in text:
            month, day = day, month
        if len(year) == 2:
            year = ("20" if int(year) < 50 else "19") + year
    is_either = len(first) < 4 and max(month, day) <= len(_MONTHS) and month != day
    if month > len(_MONTHS):
        month, day = day, month
    is_date = 1 <= month <= len(_MONTHS) and 1 <= day <= _LAST_DAY
    return (month, day, year, is_either) if is_date else None


def resolved(
    tokens: Sequence[Token], pairs: frozenset[Date], either: dict[Date, Date]
) -> list[Token]:
    """Return a sentence's words with each date in the order in which the passages have it.

    `pairs` are the passages' dates, `either` their dates of either order: each by its other order.
    """
    found = list(tokens)
    for at in range(len(found) - 1):
        place = _date_at(found, at)
        if place is None:
            continue
        month, day = (found[n] for n in place)
        date, other = (month.form.stem, day.form.stem), (month.other, day.other)
        instead = either.get(date) or (other if other in pairs else None)
        if date not in pairs and instead is not None:
            name, number = instead
            found[place[0]] = month._replace(form=_month(STEMS.index(name) + 1))
            found[place[1]] = day._replace(form=_number(number))
    return found


def dates_of(tokens: Sequence[Token | None]) -> tuple[frozenset[Date], dict[Date, Date]]:
    """Return the dates of passages, and those of either order: each by its other order."""
    pairs, either = set[Date](), dict[Date, Date]()
    for at in range(len(tokens) - 1):
        place = _date_at(tokens, at)
        if place is None:
            continue
        month, day = (token for n in place if (token := tokens[n]) is not None)
        date = month.form.stem, day.form.stem
        pairs.add(date)
        if month.other:
            either[month.other, day.other] = date
    return frozenset(pairs), either


def month_first(tokens: Sequence[Token]) -> list[Token]:
    """Return the words with the month of each date before its day, without `of` between them."""
    found = [token for at, token in enumerate(tokens) if not _is_of_a_date(tokens, at)]
    for at in range(len(found) - 1):
        place = _date_at(found, at)
        if place is not None and place[1] < place[0] and 0 < int(found[at].form.stem) <= _LAST_DAY:
            found[at], found[at + 1] = found[at + 1], found[at]
    return found


def _is_of_a_date(tokens: Sequence[Token], at: int) -> bool:
    return (
        tokens[at].form.stem == "of"
        and 0 < at < len(tokens) - 1
        and tokens[at - 1].form.is_number
        and tokens[at + 1].form.stem in STEMS
    )


def months_of_dates(tokens: Sequence[Token]) -> list[Token]:
    """Return the names of months that stand beside a number."""
    return [
        token
        for at, token in enumerate(tokens)
        if token.form.stem in STEMS
        and any(t.form.is_number for t in tokens[max(at - 1, 0) : at + 2])
    ]


def _date_at(tokens: Sequence[Token | None], at: int) -> tuple[int, int] | None:
    """Return the places of a month and a day that stand beside each other from `at` on."""
    one, two = tokens[at], tokens[at + 1]
    if one is None or two is None or one.form.is_number == two.form.is_number:
        return None
    day, month = (one, two) if one.form.is_number else (two, one)
    if month.form.stem not in STEMS or len(day.form.stem) > 2:
        return None
    return (at + 1, at) if one.form.is_number else (at, at + 1)


def _month(month: int) -> NormalForm:
    """Return the form of a month; `may` is a word without content too."""
    name = STEMS[month - 1]
    return NormalForm(name, is_content=name != "may")


def _number(digits: str) -> NormalForm:
    return NormalForm(digits.lstrip("0") or "0", is_number=True)
