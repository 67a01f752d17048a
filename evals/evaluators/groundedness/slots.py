"""Evidence for the words in which two sentences differ, beside the words that both share.

Each stretch of differing words is a slot. Its anchors are the shared content words around it. The
passages' places of the anchors show which sentence's words belong there.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from evals.evaluators.groundedness.features import Values, WordIds
from evals.evaluators.groundedness.passages import Passages

NOTHING = -9.0
"""The value of a feature that has nothing to measure."""
_ANCHORS = 3
"""Anchors on each side of a slot."""
_REACH = 8
"""Places on either side of an anchor that are searched."""
_OCCURRENCES = 16
_NEAR_BEST = 0.85
"""Share of the best place's weight of anchors above which a place counts."""
NAMES = ("anchored", "ours", "theirs", "more", "closer", "least", "negated", "agrees")


class Slot(NamedTuple):
    """A stretch of differing words, by their indices; one side may be empty."""

    ours: range
    theirs: range


class _Place(NamedTuple):
    anchored: float
    """Share of the anchors' weight near this place."""
    ours: float
    theirs: float
    """How near the words of each side are, in [0, 1]; 0 if absent."""
    negated: bool


def evidence(slots: Sequence[Slot], ours: WordIds, theirs: WordIds, passages: Passages) -> Values:
    """Return the features of all slots, named as in `NAMES`."""
    every = [_of_slot(slot, ours, theirs, passages) for slot in slots]
    found = [one for one in every if one["anchored"] > 0]
    if not found:
        return dict.fromkeys(NAMES, NOTHING)
    values = {name: sum(one[name] for one in found) / len(found) for name in NAMES}
    values["least"] = min(one["more"] for one in found)
    return values


def compared(words: WordIds) -> list[str]:
    """Return each word's stem, marked if it is in the past tense."""
    return [token.form.stem + "~" * token.form.is_past for token in words.tokens]


def slots_of(ours: WordIds, theirs: WordIds) -> list[Slot]:
    """Return the slots; swapped sentences give swapped slots."""
    a, b = compared(ours), compared(theirs)
    if swapped := b < a:
        a, b = b, a
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    slots = [Slot(range(i, j), range(k, m)) for tag, i, j, k, m in blocks if tag != "equal"]
    return [Slot(slot.theirs, slot.ours) for slot in slots] if swapped else slots


def _of_slot(slot: Slot, ours: WordIds, theirs: WordIds, passages: Passages) -> Values:
    own, other = ([w.rows[at] for at in s] for w, s in ((ours, slot.ours), (theirs, slot.theirs)))
    common = set(own) & set(other)
    only_own, only_other = ([r for r in rows if r not in common] for rows in (own, other))
    places = _places(_anchors(slot.ours, ours), only_own, only_other, passages)
    if not places:
        return dict.fromkeys(NAMES, 0.0)
    best = max(place.anchored for place in places)
    near = [place for place in places if place.anchored >= _NEAR_BEST * best]
    mine = max(place.anchored * place.ours for place in places) if own else NOTHING
    another = max(place.anchored * place.theirs for place in places) if other else NOTHING
    negated = sum(place.negated for place in near) / len(near)
    polarity = _negates(ours, slot.ours) - _negates(theirs, slot.theirs)
    return {
        "anchored": best,
        "ours": mine,
        "theirs": another,
        "more": max(mine, 0.0) - max(another, 0.0),
        "closer": max(place.ours for place in near) - max(place.theirs for place in near),
        "least": 0.0,
        "negated": negated,
        "agrees": polarity * (2 * negated - 1),
    }


def _negates(words: WordIds, slot: range) -> bool:
    return any(words.tokens[at].form.is_negator for at in slot)


def _anchors(slot: range, words: WordIds) -> dict[int, float]:
    """Return the weights of the nearest content words on both sides that the passages have."""
    before = [at for at in range(slot.start) if words.tokens[at].form.is_content]
    behind = [at for at in range(slot.stop, len(words.tokens)) if words.tokens[at].form.is_content]
    chosen = before[-_ANCHORS:] + behind[:_ANCHORS]
    return {words.rows[at]: words.row_weights[at] for at in chosen if words.rows[at] >= 0}


def _places(
    anchors: dict[int, float], own: Sequence[int], other: Sequence[int], passages: Passages
) -> list[_Place]:
    total, found = sum(anchors.values()), []
    for anchor in anchors:
        for place in passages.positions[anchor][:_OCCURRENCES]:
            start = max(place - _REACH, 0)
            around = passages.row[start : place + _REACH + 1]
            held = {row for row in around if row in anchors}
            found.append(
                _Place(
                    sum(anchors[row] for row in held) / total,
                    _nearness(own, around, place - start),
                    _nearness(other, around, place - start),
                    any(
                        token is not None and token.form.is_negator
                        for token in passages.places[start : place + _REACH + 1]
                    ),
                )
            )
    return found


def _nearness(words: Sequence[int], around: Sequence[int], at: int) -> float:
    """Return how near the words are to an index: 1 beside it, 0 if absent; their mean."""
    if not words:
        return 0.0
    near = 0.0
    for word in words:
        distances = [abs(n - at) for n, row in enumerate(around) if row == word and row >= 0]
        near += 2 / (1 + max(min(distances), 1)) if distances else 0.0
    return near / len(words)
