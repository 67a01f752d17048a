"""Edits that write a name with an acronym otherwise."""

import random
import re

from training.groundedness.edits.places import Edit, Source, a_match, put

_WITH_ACRONYM = re.compile(
    r"\b((?:[A-Za-z][a-z]+[ -](?:(?:of|and|for|the) )?){1,5})\(([A-Z]{2,6})\)"
)
_SMALL = frozenset(["of", "and", "for", "the"])


def rewritten(source: Source, rng: random.Random) -> Edit | None:
    """Give only the name or only its acronym, or the acronym first."""
    match = a_match(_WITH_ACRONYM, source.answer, rng)
    if match is None or (name := _name(match[1].strip(), match[2])) is None:
        return None
    start = match.start(1) + match[1].rindex(name)
    written = rng.choice((name, match[2], f"{match[2]} ({name})"))
    return put(source.answer, start, match.end(), written)


def _name(words: str, acronym: str) -> str | None:
    """Return the end of the words that has the acronym's initials."""
    for first in re.finditer(r"\b[A-Za-z]+", words):
        name = words[first.start() :]
        parts = [part for part in re.findall(r"\w+", name) if part not in _SMALL]
        if first[0] not in _SMALL and "".join(part[0] for part in parts).upper() == acronym:
            return name
    return None
