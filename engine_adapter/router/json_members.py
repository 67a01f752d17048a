"""Change single members of a JSON object's text and leave every other byte unchanged.

Decoding and encoding again would change numbers, escapes, spaces and duplicate members.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_DECODE = json.JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\n\r]*")


class Member(NamedTuple):
    """One member of an object, as offsets into the text."""

    name: str
    start: int
    """Offset of the name's opening quote."""
    value_start: int
    end: int
    """Offset just after the value."""


def members(text: str) -> list[Member]:
    """Return the object's members; raises `ValueError` if the text is not an object."""
    at = _past(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    found: list[Member] = []
    at = _past(text, at + 1)
    while text[at : at + 1] != "}":
        if found:
            at = _past(text, _expect(text, at, ","))
        _expect(text, at, '"')
        name, name_end = _DECODE(text, at)
        value_start = _past(text, _expect(text, _past(text, name_end), ":"))
        _, end = _DECODE(text, value_start)
        found.append(Member(name, at, value_start, end))
        at = _past(text, end)
    return found


def with_members(text: str, values: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the object with these members: existing ones replaced in place, others appended."""
    present = members(text)
    names = {member.name for member in present}
    for member in reversed(present):
        if member.name in values:
            new = _encode(values[member.name])
            text = text[: member.value_start] + new + text[member.end :]
    added = {name: value for name, value in values.items() if name not in names}
    return with_new_members(text, added, empty=not present) if added else text


def with_new_members(text: str, values: Mapping[str, Any], *, empty: bool) -> str:  # Any: JSON
    """Append members that the object does not have yet; `empty`: it has no members."""
    added = ",".join(f"{_encode(name)}:{_encode(value)}" for name, value in values.items())
    end = text.rindex("}")
    return f"{text[:end]}{'' if empty else ','}{added}{text[end:]}"


def without_members(text: str, unwanted: Callable[[str], bool]) -> str:
    """Remove the members whose names are unwanted, each with its comma."""
    while True:
        present = members(text)
        place = next((n for n, member in enumerate(present) if unwanted(member.name)), None)
        if place is None:
            return text
        member = present[place]
        if place > 0:
            text = text[: present[place - 1].end] + text[member.end :]
        elif len(present) > 1:
            text = text[: member.start] + text[present[1].start :]
        else:
            text = text[: member.start] + text[member.end :]


def _encode(value: Any) -> str:  # Any: JSON
    return json.dumps(value, separators=(",", ":"))


def _past(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space is not None else at


def _expect(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise ValueError(f"no {mark} at {at}")
    return at + 1
