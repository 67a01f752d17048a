"""Numbers with a bound in the other direction than in the passages: `more than`, `at most`."""

from collections.abc import Sequence
from typing import NamedTuple

from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.tokens import Token, tokens_of

_LEAST, _MOST = "at least", "at most"
_GREATER = ["more", "greater", "higher", "longer", "larger", "later", "older", "bigger"]
_LESSER = ["less", "fewer", "lower", "shorter", "smaller", "earlier", "younger", "sooner"]
_PHRASES = {
    _LEAST: (
        "over|above|at least|a minimum of|minimum of|upwards of|exceeding|in excess of|beyond",
        *(f"{word} than" for word in _GREATER), *(f"no {word} than" for word in _LESSER),
        *(f"not {word} than" for word in _LESSER),
    ),
    _MOST: (
        "under|below|at most|a maximum of|maximum of|up to|not exceeding|no over|not over",
        *(f"{word} than" for word in _LESSER), *(f"no {word} than" for word in _GREATER),
        *(f"not {word} than" for word in _GREATER),
    ),
}  # fmt: skip
_BOUNDS = {
    tuple(token.form.stem for token in tokens_of(phrase)): bound
    for bound, several in _PHRASES.items()
    for phrases in several
    for phrase in phrases.split("|")
}
_MAX_PHRASE = max(map(len, _BOUNDS))
_REACH = 8
"""Words before a bound in which a negation turns it, so that its direction is not known."""


class _Bound(NamedTuple):
    direction: str | None
    words: int


def other_bounds(
    tokens: Sequence[Token], rows: Sequence[int], text: str, passages: Passages
) -> tuple[tuple[str, str], ...]:
    """Return numbers with their bound as written, and the opposite bound of the passages.

    Only numbers that have the opposite bound wherever the passages hold them.
    `rows` are the passages' ids of the tokens, −1 for absent ones.
    """
    found = []
    for at, (token, row) in enumerate(zip(tokens, rows, strict=True)):
        if row < 0 or not token.form.is_number:
            continue
        own = _bound(tokens[:at])
        if own.direction is None:
            continue
        theirs = {_bound(_before(place, passages)).direction for place in passages.positions[row]}
        if len(theirs) == 1 and (other := theirs.pop()) not in (None, own.direction):
            found.append((text[tokens[at - own.words].start : token.end], f"{other} this"))
    return tuple(found)


def _before(place: int, passages: Passages) -> list[Token]:
    """Return the words before a place, as many as matter."""
    found = list[Token]()
    for token in reversed(passages.places[max(place - _MAX_PHRASE - _REACH, 0) : place]):
        if token is None:
            break
        found.append(token)
    return found[::-1]


def _bound(before: Sequence[Token]) -> _Bound:
    """Return the bound that ends before a number."""
    stems = [token.form.stem for token in before[-_MAX_PHRASE:]]
    for words in range(len(stems), 0, -1):
        direction = _BOUNDS.get(tuple(stems[-words:]))
        if direction is not None:
            near = before[: len(before) - words][-_REACH:]
            return _Bound(None if any(t.form.is_negator for t in near) else direction, words)
    return _Bound(None, 0)
