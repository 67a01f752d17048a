"""Clock times: `5 p.m.`, `5:00 PM` and `17:00` are one time."""

import re
from collections.abc import Iterator

from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import NormalForm, Token

TIME = (
    r"(?<![\d.:,/])(?:(?:1[0-2]|0?[1-9])(?::[0-5]\d)?"
    r"(?:\s?[aApP]\.?[mM]\b|(?:\so'clock)?\sin\sthe\s(?:morning|afternoon|evening)\b)"
    r"|(?:[01]?\d|2[0-3]):(?:00|15|30|45)(?![\d:]))"
)
"""A time on the twelve-hour clock, or a quarter of an hour on either clock."""
HALVES = frozenset(["am", "pm"])
"""Stems of the halves of a day."""
_SPELLED = {"morning": "am", "afternoon": "pm", "evening": "pm"}
_NAMES = {"am": "midnight", "pm": "noon"}


def time_tokens(text: str, start: int) -> Iterator[Token]:
    """Yield hour, minutes and half of the day of a `TIME` at `start`, without minutes that are 0.

    Twelve o'clock is `noon` or `midnight`. A time without a half that may be of either has none.
    """
    hours, *minutes = re.finditer(r"\d+", text)
    hour, minute = int(hours.group()), int(minutes[0].group()) if minutes else 0
    said = re.findall(r"[a-z]+", text.lower().replace(".", ""))
    half = _SPELLED.get(said[-1], said[-1]) if said else ""
    if not half and not (0 < hour <= 12 and text[0] != "0"):
        half, hour = "am" if hour < 12 else "pm", hour % 12 or 12
    end = start + len(text)
    if half and (hour, minute) == (12, 0):
        yield Token(NormalForm(stem(_NAMES[half])), start, end, is_name=False)
        return
    cut, stop = (start + found.end() for found in (hours, (minutes or [hours])[0]))
    yield Token(_number(hour), start, cut if minute else stop, is_name=False)
    if minute:
        yield Token(_number(minute), cut + 1, stop, is_name=False)
    if half:
        yield Token(NormalForm(half, is_content=half == "pm"), stop, end, is_name=False)


def _number(value: int) -> NormalForm:
    return NormalForm(str(value), is_number=True)
