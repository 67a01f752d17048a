"""Names: text that is a key, such as that of a rollout or of a metric."""

import re
from typing import Final

MAX_NAME: Final = 255
"""Longest name in characters, so that a database's index can hold several."""
WANTED_NAME: Final = f"wanted up to {MAX_NAME} characters, none of them a control character"
# C0, DEL and C1; line and paragraph separators; what turns the direction of text. They would act on
# the terminal, the log or the page that shows a name. `_span_reader.c` has the same.
_CONTROL: Final = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u2028-\u202e\u2066-\u2069]")


def is_name(text: str) -> bool:
    """Return whether the text can be a key."""
    return len(text) <= MAX_NAME and not has_control(text)


def has_control(text: str) -> bool:
    """Say whether a character of the text does something to what shows it."""
    return _CONTROL.search(text) is not None
