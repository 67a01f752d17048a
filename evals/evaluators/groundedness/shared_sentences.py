"""Which sentences two answers to one prompt share, and which stand in each other's place."""

from collections.abc import Sequence
from typing import NamedTuple

from evals.evaluators.groundedness.sentences import Sentence

LEAST_ALIKE = 0.5
"""Share of words in common from which on two sentences are variants of one."""
_MAX_COMPARED = 60
"""Of longer lists of differing sentences only those at about the same place are compared."""

Key = tuple[str, ...]


class SentenceMatch(NamedTuple):
    """Two answers' sentences, by their numbers."""

    shared: frozenset[Key]
    """What both say, word for word."""
    pairs: tuple[tuple[int, int], ...]
    """Sentences that differ, and stand for each other: our number, then theirs."""
    ours: tuple[int, ...]
    """Sentences of ours that neither stand in the other answer nor have a counterpart there."""
    theirs: tuple[int, ...]

    def exchanged(self) -> "SentenceMatch":
        """Return the same from the other answer's side."""
        pairs = tuple(sorted((b, a) for a, b in self.pairs))
        return SentenceMatch(self.shared, pairs, self.theirs, self.ours)


def key(sentence: Sentence) -> Key:
    """Return what makes two sentences the same: their words."""
    return tuple(token.form.stem for token in sentence.tokens)


def twins(our_keys: Sequence[Key], their_keys: Sequence[Key]) -> SentenceMatch:
    """Compare two answers by their sentences' keys.

    With the answers exchanged the result is the same, exchanged.
    """
    shared = frozenset(our_keys) & frozenset(their_keys)
    left = [at for at, k in enumerate(our_keys) if k not in shared]
    right = [at for at, k in enumerate(their_keys) if k not in shared]
    pairs = _variants(left, right, our_keys, their_keys)
    taken, taken_there = {a for a, _ in pairs}, {b for _, b in pairs}
    left = [a for a in left if a not in taken]
    right = [b for b in right if b not in taken_there]
    placed = _at_one_place(left, right, our_keys, their_keys, shared)
    taken, taken_there = {a for a, _ in placed}, {b for _, b in placed}
    return SentenceMatch(
        shared,
        tuple(sorted(pairs + placed)),
        tuple(a for a in left if a not in taken),
        tuple(b for b in right if b not in taken_there),
    )


def _variants(
    left: Sequence[int], right: Sequence[int], ours: Sequence[Key], theirs: Sequence[Key]
) -> list[tuple[int, int]]:
    """Return the sentences that are most alike, each once, the likest first."""
    sets = {b: frozenset(theirs[b]) for b in right}
    found = []
    for n, a in enumerate(left):
        own = frozenset(ours[a])
        for b in right[max(n - _MAX_COMPARED, 0) : n + _MAX_COMPARED + 1]:
            alike = 2 * len(own & sets[b]) / (len(own) + len(sets[b]))
            if alike >= LEAST_ALIKE:
                # Ties that are left are of (a, b) and (b, a), which do not exclude each other.
                found.append((-alike, abs(a - b), a + b, a, b))
    pairs, taken, taken_there = list[tuple[int, int]](), set[int](), set[int]()
    for *_, a, b in sorted(found):
        if a not in taken and b not in taken_there:
            pairs.append((a, b))
            taken.add(a)
            taken_there.add(b)
    return pairs


def _at_one_place(
    left: Sequence[int],
    right: Sequence[int],
    ours: Sequence[Key],
    theirs: Sequence[Key],
    shared: frozenset[Key],
) -> list[tuple[int, int]]:
    """Return the sentences that stand, in their order, between the same shared ones."""
    here, there = _places(left, ours, shared), _places(right, theirs, shared)
    return [
        pair for place, of in here.items() for pair in zip(of, there.get(place, ()), strict=False)
    ]


def _places(
    numbers: Sequence[int], keys: Sequence[Key], shared: frozenset[Key]
) -> dict[tuple[Key | None, Key | None], list[int]]:
    """Return which of the sentences stand between which shared ones; None is an answer's end."""
    before, after = _last_shared(keys, shared), _last_shared(keys[::-1], shared)[::-1]
    found: dict[tuple[Key | None, Key | None], list[int]] = {}
    for at in numbers:
        place = (before[at], after[at])
        if place != (None, None):
            found.setdefault(place, []).append(at)
    return found


def _last_shared(keys: Sequence[Key], shared: frozenset[Key]) -> list[Key | None]:
    """Return for each sentence the last shared one up to it."""
    last, found = None, list[Key | None]()
    for name in keys:
        last = name if name in shared else last
        found.append(last)
    return found
