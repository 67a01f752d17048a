"""An answer that repeats itself without end."""

import re

_WORD = re.compile(r"\S+")
_MAX_PERIOD = 60
_MIN_REPEATS = 4
_MIN_WORDS = 16
_CHARACTER_RUN = re.compile(r"([^\W\d_])\1{29,}")
_UNSPACED_RUN = re.compile(r"([^\W\d_]{2,20}?)\1{9,}")


def loop(text: str) -> str | None:
    """Name a run of words that stands four times or more in a row, over 16 words at least.

    Words without a letter do not count: tables and number lists repeat by right.
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
    """Return where a long enough run of this period ends."""
    needed = max(_MIN_REPEATS * period, _MIN_WORDS) - period
    same = 0
    for at in range(period, len(words)):
        same = same + 1 if words[at] == words[at - period] else 0
        if same >= needed:
            return at + 1
    return None
