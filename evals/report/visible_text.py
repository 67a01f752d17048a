"""Make names and messages safe for terminals, logs, CI and XML.

Names come from senders of spans, which are not trusted. Single source of truth for the characters
that are escaped.
"""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

T = TypeVar("T")
# Control characters, line separators, bidirectional controls, and characters that XML forbids.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_COMMAND: Final = re.compile(r"\s*(::|##\[)")
"""Start of a line that CI runners read as a command."""


def visible(text: str) -> str:
    """Escape characters that are invisible or dangerous, and the start of a CI command."""
    if _COMMAND.match(text):
        text = text.lstrip()
        text = f"\\x{ord(text[0]):02x}{text[1:]}"
    return _UNSAFE.sub(_escaped, text)


def made_visible(record: T) -> T:
    """Return a copy of a record or collection with `visible` applied to every text in it."""
    return _made_visible(record)  # type: ignore[no-any-return]  # of the type that was given


def _made_visible(value: Any) -> Any:  # Any: of any field's type
    if isinstance(value, str):
        # Members of a string enumeration are the program's own and stay as they are.
        return visible(value) if type(value) is str else value
    if isinstance(value, tuple | list):
        made = [_made_visible(item) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, Mapping):
        return {_made_visible(key): _made_visible(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return replace(value, **{name: _made_visible(getattr(value, name)) for name in names})
    return value


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
