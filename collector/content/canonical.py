"""Canonical spellings, by which two spellings of one value get the same token."""

import re

_NO_DIGIT = re.compile(rb"\(0\)|[^0-9]")
_AMERICAN_DIGITS = 11
_SPACES = re.compile(rb"\s+")


def phone(number: bytes) -> bytes:
    """Return the digits, without the prefix of international calls (`00`, `+`) and `(0)`.

    A number of North America has no country code.
    """
    plain = digits(number).removeprefix(b"00")
    is_american = len(plain) == _AMERICAN_DIGITS and plain.startswith(b"1")
    return plain[1:] if is_american else plain


def digits(number: bytes) -> bytes:
    """Return the digits alone."""
    return _NO_DIGIT.sub(b"", number)


def without_spaces(text: bytes) -> bytes:
    """Return the text without white space."""
    return _SPACES.sub(b"", text)


def lower(text: bytes) -> bytes:
    """Return the text in lower case."""
    return text.decode(errors="replace").lower().encode()
