"""Dialects: the ways in which others write a generation as a span.

A span is a generation where a dialect recognises it; the first that does wins. Every other span is
stored too. A new dialect is one file here and one entry in `DIALECTS`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from collector.contract import AttributeValue, Content, Decoded, Span
from collector.dialects import conventional_text
from collector.dialects.dialect import Dialect
from collector.dialects.draftgate import DRAFTGATE, is_contract

__all__ = [
    "DIALECTS",
    "DRAFTGATE",
    "Dialect",
    "Recognised",
    "content",
    "is_contract",
    "is_text",
    "recognise",
]

DIALECTS: tuple[Dialect, ...] = (DRAFTGATE,)


class Recognised(NamedTuple):
    """A generation, and the dialect that it was written in."""

    dialect: str
    decoded: Decoded


def recognise(span: Span) -> Recognised | None:
    """Return the generation that the span carries, or None where no dialect knows it as one."""
    for dialect in DIALECTS:
        decoded = dialect.recognise(span)
        if decoded is not None:
            return Recognised(dialect.name, decoded)
    return None


@lru_cache(maxsize=4096)
def is_text(attribute: str) -> bool:
    """Say whether any dialect or convention keeps text in an attribute of this name."""
    return conventional_text.is_text(attribute) or any(d.is_text(attribute) for d in DIALECTS)


def content(dialect_name: str, text: Mapping[str, AttributeValue]) -> Content | None:
    """Return the content that a generation of this dialect has in its text attributes."""
    for dialect in DIALECTS:
        if dialect.name == dialect_name:
            return dialect.content(text)
    return None
