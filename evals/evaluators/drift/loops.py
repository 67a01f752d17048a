"""Detect an answer that repeats itself."""

import re

_WORD = re.compile(r"\S+")
_MAX_PERIOD = 60
_MIN_REPEATS = 4
_MIN_WORDS = 16
_CHARACTER_RUN = re.compile(r"([^\W\d_])\1{29,}")
_UNSPACED_RUN = re.compile(r"([^\W\d_]{2,20}?)\1{9,}")


def loop(text: str) -> str | None:
    """Return text that repeats: at least four times in a row, over at least 16 words.

    A letter 30 times, or 2 to 20 unspaced letters 10 times, count too. Words without a letter are
    ignored: tables and lists of numbers may repeat.
    """
    for pattern in (_CHARACTER_RUN, _UNSPACED_RUN):
        if match := pattern.search(text):
            return f"{match.group(1)!r} {len(match.group()) // len(match.group(1))} times"
    words = [w for w in _WORD.findall(text) if any(map(str.isalpha, w))]
    for period in range(1, min(_MAX_PERIOD, len(words) // _MIN_REPEATS) + 1):
        if (end := _run_end(words, period)) is not None:
            unit = " ".join(words[end - period : end])
            return f"{unit[:60]!r} again and again"
    return None


def _run_end(words: list[str], period: int) -> int | None:
    """Return the index after a long enough run of this period; `None` if there is none."""
    needed = max(_MIN_REPEATS * period, _MIN_WORDS) - period
    same = 0
    for at in range(period, len(words)):
        same = same + 1 if words[at] == words[at - period] else 0
        if same >= needed:
            return at + 1
    return None
