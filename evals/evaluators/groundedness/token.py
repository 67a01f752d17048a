"""One word of a text."""

from typing import NamedTuple


class Form(NamedTuple):
    """What a word is compared by."""

    stem: str
    is_content: bool = True
    is_number: bool = False
    is_negator: bool = False
    is_past: bool = False
    """Written as the past or the participle of a verb."""


class Token(NamedTuple):
    """A word in its text."""

    form: Form
    start: int
    end: int
    is_name: bool
    """Written with a capital that its place does not explain."""
