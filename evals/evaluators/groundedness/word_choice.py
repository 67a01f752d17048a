"""Evidence for the words in which two sentences differ: which of them are usual at their places.

Text tells by its other words whether `may` or `will`, `some` or `all`, `is` or `was` stands in a
place, also where passages tell nothing of it.
"""

from collections.abc import Sequence

from evals.evaluators.groundedness.features import Values, WordIds
from evals.evaluators.groundedness.slots import Slot
from evals.evaluators.groundedness.token import Token
from evals.evaluators.groundedness.word_odds import NO_WORD, OTHER_PAST, WordOdds, choice_of, terms

NAMES = ("more", "least", "most", "places")
_FIRST = 3
"""Words at the beginning of a stretch of differing words that are judged."""


def evidence(slots: Sequence[Slot], ours: WordIds, theirs: WordIds, odds: WordOdds) -> Values:
    """Return the features named in `NAMES`: how much more usual our words are than theirs.

    They are log-odds: the sum over the places where one side has a word of the vocabulary, the
    least and the greatest of these, and the places' number.
    """
    found = [_more(slot, ours.tokens, theirs.tokens, odds) for slot in slots]
    known = [one for one in found if one is not None]
    values = sum(known), min(known, default=0.0), max(known, default=0.0), len(known)
    return dict(zip(NAMES, map(float, values), strict=True))


def _more(
    slot: Slot, ours: Sequence[Token], theirs: Sequence[Token], odds: WordOdds
) -> float | None:
    """Return the log-odds of our words against theirs; `None` without words to judge."""
    mine, other = _choices(ours, slot.ours), _choices(theirs, slot.theirs)
    is_known = max(*mine, *other) > OTHER_PAST
    if mine == other or not (is_known or _is_one_verb(slot, ours, theirs)):
        return None
    here, there = (
        odds.of(terms(tokens[: own.start], tokens[own.stop :]))
        for tokens, own in ((ours, slot.ours), (theirs, slot.theirs))
    )
    found = (here + there) / 2
    return float(found[mine].mean() - found[other].mean())


def _is_one_verb(slot: Slot, ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Return whether the sides have one word in two tenses."""
    one, other = (
        [t.form.stem for t in side[s.start : s.stop]]
        for side, s in ((ours, slot.ours), (theirs, slot.theirs))
    )
    return len(one) == 1 and one == other


def _choices(tokens: Sequence[Token], own: range) -> list[int]:
    """Return the words' numbers in the vocabulary, without those outside it if there are others."""
    every = [choice_of(tokens[at]) for at in own[:_FIRST]] or [NO_WORD]
    return [one for one in every if one > OTHER_PAST] or every
