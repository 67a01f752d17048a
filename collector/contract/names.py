"""Names: text that is a key, such as that of a rollout or of a metric."""

from typing import Final

MAX_NAME: Final = 255
"""Longest name in characters, so that a database's index can hold several."""
WANTED_NAME: Final = f"wanted up to {MAX_NAME} characters, none of them NUL"


def is_name(text: str) -> bool:
    """Return whether the text can be a key."""
    return len(text) <= MAX_NAME and "\0" not in text
