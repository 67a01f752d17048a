"""Answers kept for texts that come again, and only for short ones: senders choose the texts."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

R = TypeVar("R")
LONGEST: Final = 256
"""Characters of a text whose answer is kept."""
_MOST: Final = 4096


def of_short_texts(function: Callable[[str], R]) -> Callable[[str], R]:
    """Return the function, with its answers for the last 4096 short texts kept."""
    kept = lru_cache(maxsize=_MOST)(function)

    @wraps(function)
    def asked(text: str) -> R:
        return kept(text) if len(text) <= LONGEST else function(text)

    return asked
