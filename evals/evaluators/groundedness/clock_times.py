"""Clock times: `5 p.m.`, `5:00 PM` and `17:00` are one time."""

import re
from collections.abc import Iterator

from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import NormalForm, Token

TIME = (
    r"(?<![\d.:,/])(?:(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5]\d))?\s?(?P<half>[aApP])\.?[mM]\b"
    r"|(?P<hour_of_day>[01]?\d|2[0-3]):(?P<quarter>00|15|30|45)(?![\d:]))"
)
"""A time on the twelve-hour clock, or a quarter of an hour on either clock."""
HALVES = frozenset(["am", "pm"])
"""Stems of the halves of a day."""
_NAMES = {"am": "midnight", "pm": "noon"}


def time_tokens(match: re.Match[str]) -> Iterator[Token]:
    """Yield hour, minutes and half of the day of a match of `TIME`, without minutes that are 0.

    Twelve o'clock is `noon` or `midnight`. A time without a half that may be of either has none.
    """
    start, end = match.span()
    hour, minute = int(match["hour"] or match["hour_of_day"]), match["minute"] or match["quarter"]
    half = f"{match['half'].lower()}m" if match["half"] else ""
    if match["hour_of_day"] and not 0 < hour <= 12:
        half = "pm" if hour else "am"
        hour = hour - 12 if hour else 12
    minutes = int(minute or 0)
    if half and (hour, minutes) == (12, 0):
        yield Token(NormalForm(stem(_NAMES[half])), start, end, is_name=False)
        return
    cut = match.end("hour") if match["hour"] else match.end("hour_of_day")
    stop = cut if minute is None else match.end("minute" if match["minute"] else "quarter")
    yield Token(_number(hour), start, cut if minutes else stop, is_name=False)
    if minutes:
        yield Token(_number(minutes), cut + 1, stop, is_name=False)
    if half:
        yield Token(NormalForm(half, is_content=half == "pm"), stop, end, is_name=False)


def _number(value: int) -> NormalForm:
    return NormalForm(str(value), is_number=True)
