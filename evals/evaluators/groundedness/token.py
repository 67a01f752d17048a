"""A word of a text, and its normalized form."""

from typing import NamedTuple


class NormalForm(NamedTuple):
    """The normalized form in which words are compared."""

    stem: str
    is_content: bool = True
    is_number: bool = False
    is_negator: bool = False
    is_past: bool = False
    """Looks like the past tense or past participle of a verb."""


class Token(NamedTuple):
    """A word at its place in a text."""

    form: NormalForm
    start: int
    end: int
    is_name: bool
    """Capitalized, and not because a sentence begins there."""
    other: str = ""
    """The stem if day and month of this date are exchanged; empty if the order is certain."""
