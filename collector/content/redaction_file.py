"""The redaction file: which shipped patterns apply, and additional patterns."""

import re
from collections.abc import Mapping
from pathlib import Path

import re2

from collector import config_file
from collector.content.redaction import Pattern, compiled
from collector.content.shipped import SHIPPED, shipped
from collector.errors import SettingsError

_KEYS = ("shipped", "patterns")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def read(path: Path) -> tuple[Pattern, ...]:
    """Return the patterns of a YAML or TOML file, its own patterns before the shipped ones.

    Raises `SettingsError` with the file, the key and, for an expression, the position in it.
    """
    document = config_file.load(path)
    if not isinstance(document, Mapping):
        raise SettingsError(f"{path}: wanted keys such as `patterns:`, got {_kind(document)}")
    for key in document:
        if key not in _KEYS:
            raise SettingsError(f"{path}: {key}: unknown key; wanted {' or '.join(_KEYS)}")
    own = document.get("patterns") or {}
    if not isinstance(own, Mapping):
        raise SettingsError(f"{path}: patterns: wanted names with expressions, got {_kind(own)}")
    return (
        *(_own(path, str(name), expression) for name, expression in own.items()),
        *_chosen(path, document.get("shipped")),
    )


def _chosen(path: Path, names: object) -> tuple[Pattern, ...]:
    if names is None:
        return shipped()
    known = {pattern.name: pattern for pattern in SHIPPED}
    if not isinstance(names, list):
        raise SettingsError(f"{path}: shipped: wanted a list of names, got {_kind(names)}")
    for index, name in enumerate(names):
        if name not in known:
            raise SettingsError(
                f"{path}: shipped[{index}]: no pattern {name!r}; wanted {', '.join(known)}"
            )
    return tuple(pattern for pattern in SHIPPED if pattern.name in names)


def _own(path: Path, name: str, expression: object) -> Pattern:
    at = f"{path}: patterns.{name}"
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{at}: wanted a name of a-z, 0-9 and _, at most 40 characters")
    if not isinstance(expression, str) or not expression:
        raise SettingsError(f"{at}: wanted a regular expression, got {_kind(expression)}")
    try:
        matcher = compiled(expression)
    except re2.error as exc:
        raise SettingsError(f"{at}: {_fault(expression, exc)}") from exc
    if matcher.search(b"") is not None:
        raise SettingsError(f"{at}: matches nothing at all; wanted at least one character")
    return Pattern(name, expression)


def _fault(expression: str, error: Exception) -> str:
    """Return the error in an expression and its position: RE2 gives the one, `re` the other."""
    words = error.args[0] if error.args else b""
    what = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
    try:
        re.compile(expression)
    except re.error as exc:
        return f"is no regular expression: {exc.msg} at position {exc.pos}"
    position = max(expression.find(what.partition(": ")[2]), 0)
    return (
        f"is not read by RE2 ({what} at position {position}); "
        "write it without look-around and back-references"
    )


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
