"""Pairs of a summary and an edited copy, of which people said whether it is still true.

The data are SummEdits (Laban et al., 2023), which publishes the copies. Each differs from its
summary in a place or two, so the words on which most copies agree are the summary.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from training.groundedness.data import Labelled, load
from training.groundedness.twin_examples import Duel

HARMLESS, HARMFUL = "harmless: summary edited", "harmful: summary edited"
_LEAST_ALIKE = 0.55
"""Share of common words from which two copies are of one summary."""
_LEAST_COPIES = 4
"""Fewer do not tell the summary."""
_MAX_ROUNDS = 3

Words = list[str]


class _Change(NamedTuple):
    """Words from `start` to `end` (exclusive) that a copy has otherwise."""

    start: int
    end: int
    words: tuple[str, ...]


def edited_summaries(file: Path) -> list[Duel]:
    """Return each summary with each of its copies; `Duel.kind` says if the copy is still true."""
    found = []
    for copies in _families(load(file)):
        summary = " ".join(_agreed([copy.answer.split() for copy in copies]))
        for copy in copies:
            answer = " ".join(copy.answer.split())
            if answer == summary:
                continue
            one = replace(copy, answer=summary, label=0)
            other = replace(
                copy, answer=answer, spans=changed(summary, answer) if copy.label else ()
            )
            found.append(Duel(one, other, HARMFUL if copy.label else HARMLESS))
    return found


def changed(text: str, copy: str) -> tuple[tuple[int, int], ...]:
    """Return the copy's characters that differ; words left out mark the words around them."""
    words, found = list(re.finditer(r"\S+", copy)), list[tuple[int, int]]()
    for _, _, first, last in _differing(text.split(), [word[0] for word in words]):
        around = (max(first - 1, 0), min(first + 1, len(words)))
        start, end = around if first == last else (first, last)
        found.append((words[start].start(), words[end - 1].end()))
    return tuple(found)


def _families(copies: Sequence[Labelled]) -> Iterator[list[Labelled]]:
    """Yield the copies of each summary; those of few copies are left out."""
    by_context: dict[str, list[Labelled]] = defaultdict(list)
    for copy in copies:
        by_context[copy.context].append(copy)
    for of_one_context in by_context.values():
        families = list[list[Labelled]]()
        for copy in of_one_context:
            words = copy.answer.split()
            known = (f for f in families if _alike(f[0].answer.split(), words) >= _LEAST_ALIKE)
            if (family := next(known, None)) is None:
                families.append([copy])
            else:
                family.append(copy)
        yield from (family for family in families if len(family) >= _LEAST_COPIES)


def _agreed(copies: Sequence[Words]) -> Words:
    """Return the words on which most copies agree, beginning with the most central copy."""
    found = max(copies, key=lambda one: sum(_alike(one, other) for other in copies))
    for _ in range(_MAX_ROUNDS):
        counts = Counter(change for copy in copies for change in _changes(found, copy))
        usual = sorted(change for change, count in counts.items() if count > len(copies) / 2)
        if not usual:
            break
        for change in reversed(usual):
            found = [*found[: change.start], *change.words, *found[change.end :]]
    return found


def _changes(one: Words, other: Words) -> Iterator[_Change]:
    for start, end, first, last in _differing(one, other):
        yield _Change(start, end, tuple(other[first:last]))


def _differing(one: Words, other: Words) -> Iterator[tuple[int, int, int, int]]:
    """Yield start and end, in each of both, of the words in which they differ."""
    for tag, start, end, first, last in _matcher(one, other).get_opcodes():
        if tag != "equal":
            yield start, end, first, last


def _alike(one: Words, other: Words) -> float:
    return _matcher(one, other).ratio()


def _matcher(one: Words, other: Words) -> SequenceMatcher[str]:
    return SequenceMatcher(None, one, other, autojunk=False)
