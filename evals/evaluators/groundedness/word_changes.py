"""Find copied wording in which one word was exchanged, inserted or left out."""

from collections.abc import Sequence
from typing import NamedTuple

from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.tokens import Token

_NEAR, _AHEAD = 3, 8
"""Words behind a name in which the name of the other text is part of one phrase, or an exchange of
both names is looked for."""
_LISTED = frozenset(["and", "or"])
"""Words on both sides of which names may be exchanged."""
_TITLE_LIST = "mr mrs ms miss dr sir lord lady prof professor rev st"
_TITLES = frozenset(map(stem, _TITLE_LIST.split()))
KINDS = ("number", "name", "word", "added_negation", "dropped_negation")


class WordChange(NamedTuple):
    """A changed word between words that are copied from the passages."""

    at: int
    """Index of the word in the sentence."""
    instead: int
    """Place of the word that the passages have there; −1 if they have none."""
    kind: str
    """One of `KINDS`."""
    strength: float
    """Summed rarity of the copied words around it."""


def splices(
    tokens: Sequence[Token],
    rows: Sequence[int],
    weights: Sequence[float],
    passages: Passages,
) -> list[WordChange]:
    """Return the changed words of a sentence; `rows` are the passages' ids of its words."""
    found: list[WordChange] = []
    last = len(rows) - 1
    for at in range(1, len(rows)):
        left = rows[at - 1]
        if left < 0:
            continue
        right = rows[at + 1] if at < last else -2
        splice = (
            _exchanged(at, rows, weights, tokens, passages)
            if right >= 0 and (left, rows[at], right) not in passages.triples
            else None
        )
        splice = splice or _dropped(at, rows, weights, passages)
        splice = splice or _after_the_same(at, rows, weights, tokens, passages)
        if splice is not None:
            found.append(splice)
    return found


def _exchanged(
    at: int,
    rows: Sequence[int],
    weights: Sequence[float],
    tokens: Sequence[Token],
    passages: Passages,
) -> WordChange | None:
    left, right = rows[at - 1], rows[at + 1]
    form = tokens[at].form
    if form.is_negator:
        if (left, right) in passages.pairs:
            return WordChange(
                at, -1, "added_negation", _strength(at - 1, at + 1, rows, weights, passages)
            )
        return None
    place = passages.between.get((left, right))
    if place is None or not form.is_content:
        return None
    other = passages.places[place]
    if other is None or not other.form.is_content or other.form.stem == form.stem:
        return None
    kind = _kind(tokens[at], other)
    if kind == "name" and _is_no_exchange(at, place, rows, tokens, passages):
        return None
    strength = _strength(at - 1, at + 1, rows, weights, passages)
    return WordChange(at, place, kind, strength)


def _after_the_same(
    at: int,
    rows: Sequence[int],
    weights: Sequence[float],
    tokens: Sequence[Token],
    passages: Passages,
) -> WordChange | None:
    """Find a number or name after two copied words that the passages continue differently."""
    token = tokens[at]
    if at < 2 or not (token.form.is_number or token.is_name):
        return None
    if (rows[at - 2], rows[at - 1], rows[at]) in passages.triples:
        return None
    place = passages.after.get((rows[at - 2], rows[at - 1]))
    other = passages.places[place] if place is not None else None
    if place is None or other is None or other.form.stem == token.form.stem:
        return None
    kind = _kind(token, other)
    if kind == "word" or (kind == "name" and _is_no_exchange(at, place, rows, tokens, passages)):
        return None
    return WordChange(at, place, kind, _strength(at - 1, None, rows, weights, passages))


def _is_no_exchange(
    at: int, place: int, rows: Sequence[int], tokens: Sequence[Token], passages: Passages
) -> bool:
    """Return whether two names at one place can both be right.

    One text says more there (`Poland's Anna Harkowska`, `Anna Harkowska`), unless the names have
    changed places or the name follows again (`States States`); one name is short for the other
    (`Gov.`, `Governor`); only one of them stands behind a comma; or the name belongs to one before
    it that the passages have elsewhere (`Mike Forney`, `Mike Radja`).
    """
    token, other = tokens[at], passages.places[place]
    if other is None:
        return False
    name, instead = token.form.stem, other.form.stem
    behind = passages.places[place + 1 : place + 1 + _AHEAD]
    there = _index(name, [each.form.stem if each else "" for each in behind])
    ours = [each.form.stem for each in tokens[at + 1 : at + 1 + _AHEAD]]
    here, again = _index(instead, ours), _index(name, ours)
    is_list = there == here == 1 and tokens[at + 1].form.stem in _LISTED
    changed_places = max(there, here) < _AHEAD and (min(there, here) > 0 or there == here)
    says_more = min(there, here) < _NEAR <= again and (is_list or not changed_places)
    is_short = name.startswith(instead) or instead.startswith(name) or instead in _TITLES
    before, left = tokens[at - 1], passages.places[place - 1]
    is_apart = left is not None and (token.start - before.end > 1) != (other.start - left.end > 1)
    known = before.is_name and (rows[at - 1], rows[at]) in passages.pairs
    return says_more or is_short or is_apart or known


def _index(stem: str, stems: Sequence[str]) -> int:
    """Return the place of a stem among others; `_AHEAD` if it is not there."""
    return stems.index(stem) if stem in stems else _AHEAD


def _dropped(
    at: int, rows: Sequence[int], weights: Sequence[float], passages: Passages
) -> WordChange | None:
    left, right = rows[at - 1], rows[at]
    if right < 0 or (left, right) in passages.pairs:
        return None
    place = passages.between.get((left, right))
    other = passages.places[place] if place is not None else None
    if place is None or other is None or not other.form.is_negator:
        return None
    return WordChange(at, place, "dropped_negation", _strength(at - 1, at, rows, weights, passages))


def _kind(token: Token, other: Token) -> str:
    if token.form.is_number and other.form.is_number:
        return "number"
    return "name" if token.is_name and other.is_name else "word"


def _strength(
    left: int,
    right: int | None,
    rows: Sequence[int],
    weights: Sequence[float],
    passages: Passages,
) -> float:
    """Return the summed weight of the copied words, up to three on each side."""
    total = weights[left]
    for at in range(left, max(left - 2, 0), -1):
        if (rows[at - 1], rows[at]) not in passages.pairs:
            break
        total += weights[at - 1]
    if right is None:
        return total
    total += weights[right]
    for at in range(right, min(right + 2, len(rows) - 1)):
        if (rows[at], rows[at + 1]) not in passages.pairs:
            break
        total += weights[at + 1]
    return total
