"""Evidence for a negation that only one of two sentences has: whether the passages deny it too.

The words that the negation governs, and those before it, are looked for in the passages. Each place
is weighed by how many of them stand there; it is denied if a negative word stands before it. Beside
that, English itself tells how usual a negation is at such a place.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from evals.evaluators.groundedness.features import Values, WordIds
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.tokens import Token, form_of
from evals.evaluators.groundedness.word_odds import DO, WordOdds

NOTHING = -9.0
"""The value of a feature that has nothing to measure."""
NAMES = ("polarity", "denied", "affirmed", "agrees", "usual", "fits", "behind_do", "behind_verb")
_USUAL = -0.7
"""Log-odds of a negation at a place where either is as likely to be right."""
_AUXILIARY_LIST = "is are was were be been can could will would should may might must has have had"
_AUXILIARIES = frozenset(_AUXILIARY_LIST.split())
_NEGATIVE = """
unable lack lacking fail failure avoid prevent refuse impossible absence absent exclude deny
prohibit forbid illegal except instead unlike unless few little incapable unavailable unknown
"""
_SCOPE = 2
"""Held content words on each side of a negation that are looked for."""
_REACH = 6
"""Words behind a negation that it may govern."""
_BEFORE = 5
"""Places before a governed word in which a negative word denies it."""
_AROUND = 10
_OCCURRENCES = 24


@cache
def _negative() -> frozenset[str]:
    return frozenset(form_of(word).stem for word in _NEGATIVE.split())


def is_negative(token: Token) -> bool:
    """Return whether a word denies what follows it."""
    return token.form.is_negator or token.form.stem in _negative()


def evidence(
    ours: WordIds,
    own: frozenset[int],
    theirs: WordIds,
    other: frozenset[int],
    passages: Passages,
    odds: WordOdds,
) -> Values:
    """Return the features named in `NAMES`; `own` and `other` are the indices that differ."""
    here, there = (
        [at for at in sorted(only) if is_negative(words.tokens[at])]
        for words, only in ((ours, own), (theirs, other))
    )
    polarity = float(len(here) - len(there))
    if polarity == 0:
        return dict.fromkeys(NAMES, NOTHING) | {"polarity": 0.0}
    words, negations = (ours, here) if polarity > 0 else (theirs, there)
    found = [each for at in negations for each in _weighed(words, at, passages)]
    denied = max((weight for weight, is_denied in found if is_denied), default=0.0)
    affirmed = max((weight for weight, is_denied in found if not is_denied), default=0.0)
    sign = 1.0 if polarity > 0 else -1.0
    places = [at for at in negations if words.tokens[at].form.is_negator]
    only = own if polarity > 0 else other
    usual = max((_usual(words.tokens, at, only, odds) for at in places), default=NOTHING)
    before = {words.tokens[at - 1].form.stem for at in places if at > 0 and at - 1 not in only}
    return {
        "polarity": polarity,
        "denied": denied,
        "affirmed": affirmed,
        "agrees": sign * (denied - affirmed),
        "usual": usual,
        "fits": sign * (usual - _USUAL) if places else 0.0,
        "behind_do": sign * (not before.isdisjoint(DO)),
        "behind_verb": sign * (not before.isdisjoint(_AUXILIARIES)),
    }


def _usual(tokens: Sequence[Token], at: int, only: frozenset[int], odds: WordOdds) -> float:
    """Return the log-odds of a negation; a `do` that came with it says nothing for it."""
    came_with_it = at - 1 in only and tokens[at - 1].form.stem in DO
    return odds.of_negation(tokens[: at - came_with_it], tokens[at + 1 :])


def _weighed(words: WordIds, at: int, passages: Passages) -> Iterator[tuple[float, bool]]:
    """Yield the weight in [0, 1] of each place of the governed words, and whether it is denied."""
    behind = _held(words, range(at + 1, min(at + 1 + _REACH, len(words.rows))))[:_SCOPE]
    before = _held(words, range(at - 1, -1, -1))[:_SCOPE]
    weights = dict(before) | dict(behind)
    total = sum(weights.values())
    for target, _ in behind or before[:1]:
        for place in passages.positions[target][:_OCCURRENCES]:
            start = max(place - _AROUND, 0)
            near = set(passages.row[start : place + _AROUND + 1])
            weight = sum(weight for row, weight in weights.items() if row in near) / total
            yield weight, _is_denied(passages.places[max(place - _BEFORE, 0) : place + 1])


def _held(words: WordIds, places: Sequence[int]) -> list[tuple[int, float]]:
    return [
        (words.rows[at], words.row_weights[at])
        for at in places
        if words.rows[at] >= 0 and words.tokens[at].form.is_content
    ]


def _is_denied(before: Sequence[Token | None]) -> bool:
    last = max((n for n, token in enumerate(before) if token is None), default=-1)
    return any(token is not None and is_negative(token) for token in before[last + 1 :])
