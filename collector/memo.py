"""Memoization of functions of a text, for short texts only because senders choose the texts."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

R = TypeVar("R")
LONGEST: Final = 256
"""The longest text, in characters, whose result is cached."""
_MOST: Final = 4096


def of_short_texts(function: Callable[[str], R]) -> Callable[[str], R]:
    """Return the function with a cache of its results for the last 4096 short texts."""
    memo = lru_cache(maxsize=_MOST)(function)

    @wraps(function)
    def cached(text: str) -> R:
        return memo(text) if len(text) <= LONGEST else function(text)

    return cached
