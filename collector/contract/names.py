"""Names: text used as a key, such as the name of a rollout or metric."""

import re
from typing import Final

MAX_NAME: Final = 255
"""Longest name in characters, so that a database index entry can contain several."""
WANTED_NAME: Final = f"wanted up to {MAX_NAME} characters, none of them a control character"
# C0, DEL and C1; line and paragraph separators; bidirectional controls. They would act on the
# terminal, log or page that shows a name. `_span_reader.c` has the same list.
_CONTROL: Final = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u2028-\u202e\u2066-\u2069]")


def is_name(text: str) -> bool:
    """Return whether the text is a valid name."""
    return len(text) <= MAX_NAME and not has_control(text)


def has_control(text: str) -> bool:
    """Return whether the text contains a control character."""
    return _CONTROL.search(text) is not None
