"""Match the sentences of two answers to one prompt: shared ones, and counterparts."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from evals.evaluators.groundedness.same_meaning import Key, is_same, key

LEAST_ALIKE = 0.5
"""Minimum share of common words for two sentences to be variants of each other."""
_MAX_COMPARED = 60
"""A differing sentence is compared with those at most this many places away in the other list."""
_MAX_RUN = 12
"""Longest run of sentences that is compared with a run of the other answer."""
_EDGE = -1

Group = tuple[tuple[int, ...], tuple[int, ...]]
"""Numbers of our sentences, and of the sentences of theirs that say the same."""

__all__ = ["Group", "Key", "SentenceMatch", "key", "match_sentences"]


class SentenceMatch(NamedTuple):
    """The match of two answers' sentences, by their numbers."""

    shared: tuple[Group, ...]
    """Sentences that both answers have, in the same words or synonyms."""
    pairs: tuple[tuple[int, int], ...]
    """Differing sentences that are counterparts: our number, then theirs."""
    ours: tuple[int, ...]
    """Our sentences that are neither shared nor have a counterpart."""
    theirs: tuple[int, ...]

    def exchanged(self) -> "SentenceMatch":
        """Return the match from the other answer's side."""
        shared = tuple(sorted((b, a) for a, b in self.shared))
        pairs = tuple(sorted((b, a) for a, b in self.pairs))
        return SentenceMatch(shared, pairs, self.theirs, self.ours)


def match_sentences(ours: Sequence[Key], theirs: Sequence[Key]) -> SentenceMatch:
    """Match two answers by their sentences' keys; swapping the answers swaps the result."""
    shared = _equal(ours, theirs)
    shared += _split_differently(ours, theirs, shared)
    left, right = _rest(len(ours), len(theirs), shared)
    found = _variants(left, right, ours, theirs)
    shared += [((a,), (b,)) for a, b in found if is_same(ours[a], theirs[b])]
    pairs = [(a, b) for a, b in found if not is_same(ours[a], theirs[b])]
    groups = [*shared, *(((a,), (b,)) for a, b in pairs)]
    placed = _at_one_place(*_rest(len(ours), len(theirs), groups), shared)
    groups += [((a,), (b,)) for a, b in placed]
    left, right = _rest(len(ours), len(theirs), groups)
    return SentenceMatch(
        tuple(sorted(shared)), tuple(sorted(pairs + placed)), tuple(left), tuple(right)
    )


def _rest(ours: int, theirs: int, groups: Sequence[Group]) -> tuple[list[int], list[int]]:
    """Return the sentences of both sides that are in no group."""
    here, there = ({n for group in groups for n in group[side]} for side in (0, 1))
    return (
        [n for n in range(ours) if n not in here],
        [n for n in range(theirs) if n not in there],
    )


def _equal(ours: Sequence[Key], theirs: Sequence[Key]) -> list[Group]:
    """Return the sentences with equal keys."""
    here, there = defaultdict[Key, list[int]](list), defaultdict[Key, list[int]](list)
    for found, keys in ((here, ours), (there, theirs)):
        for at, one in enumerate(keys):
            found[one].append(at)
    return [(tuple(at), tuple(there[one])) for one, at in here.items() if one in there]


def _split_differently(
    ours: Sequence[Key], theirs: Sequence[Key], shared: Sequence[Group]
) -> list[Group]:
    """Return runs of sentences with the same words, split into sentences differently.

    Each gap between shared sentences is searched from both of its ends.
    """
    here, there = _places(_rest(len(ours), len(theirs), shared), shared)
    found = list[Group]()
    for place, remaining in here.items():
        left, right = remaining, there.get(place, [])
        while (run := _run(left, right, ours, theirs)) is not None:
            found.append(run)
            left, right = left[len(run[0]) :], right[len(run[1]) :]
        while (run := _run(left[::-1], right[::-1], ours, theirs, backwards=True)) is not None:
            found.append((run[0][::-1], run[1][::-1]))
            left, right = left[: -len(run[0])], right[: -len(run[1])]
    return found


def _run(
    left: Sequence[int],
    right: Sequence[int],
    ours: Sequence[Key],
    theirs: Sequence[Key],
    *,
    backwards: bool = False,
) -> Group | None:
    """Return leading runs of two lists that have the same words; `None` if there are none."""
    if not left or not right:
        return None
    a, b = 1, 1
    while True:
        one = _joined([ours[n] for n in left[:a]], backwards=backwards)
        other = _joined([theirs[n] for n in right[:b]], backwards=backwards)
        if len(one.words) == len(other.words):
            return (tuple(left[:a]), tuple(right[:b])) if is_same(one, other) else None
        if len(one.words) < len(other.words):
            a += 1
        else:
            b += 1
        if a > min(len(left), _MAX_RUN) or b > min(len(right), _MAX_RUN):
            return None


def _joined(keys: Sequence[Key], *, backwards: bool) -> Key:
    keys = keys[::-1] if backwards else keys
    return Key(
        tuple(word for one in keys for word in one.words),
        tuple(number for one in keys for number in one.attributed_to),
    )


def _variants(
    left: Sequence[int], right: Sequence[int], ours: Sequence[Key], theirs: Sequence[Key]
) -> list[tuple[int, int]]:
    """Pair the sentences that are most alike, each at most once, the most alike first."""
    sets = {b: frozenset(theirs[b].words) for b in right}
    found = []
    for n, a in enumerate(left):
        own = frozenset(ours[a].words)
        for b in right[max(n - _MAX_COMPARED, 0) : n + _MAX_COMPARED + 1]:
            alike = 2 * len(own & sets[b]) / max(len(own) + len(sets[b]), 1)
            if alike >= LEAST_ALIKE:
                # The remaining ties are (a, b) and (b, a), which do not exclude each other.
                found.append((-alike, abs(a - b), a + b, a, b))
    pairs, taken, taken_there = list[tuple[int, int]](), set[int](), set[int]()
    for *_, a, b in sorted(found):
        if a not in taken and b not in taken_there:
            pairs.append((a, b))
            taken.add(a)
            taken_there.add(b)
    return pairs


def _at_one_place(
    left: Sequence[int], right: Sequence[int], shared: Sequence[Group]
) -> list[tuple[int, int]]:
    """Pair, in order, the sentences between the same shared sentences."""
    here, there = _places((left, right), shared)
    inner = [place for place in here if place != (_EDGE, _EDGE)]
    return [
        pair for place in inner for pair in zip(here[place], there.get(place, ()), strict=False)
    ]


Places = dict[tuple[int, int], list[int]]
"""Sentences by the shared groups before and after them; `_EDGE`: the answer's start or end."""


def _places(
    numbers: tuple[Sequence[int], Sequence[int]], shared: Sequence[Group]
) -> tuple[Places, Places]:
    """Group both sides' sentences by the shared groups around them."""
    sides = []
    for side in (0, 1):
        of = {n: at for at, group in enumerate(shared) for n in group[side]}
        last = max([*of, *numbers[side], 0]) + 1
        before, behind = _nearest(range(last), of), _nearest(range(last - 1, -1, -1), of)
        found: Places = {}
        for n in numbers[side]:
            found.setdefault((before[n], behind[n]), []).append(n)
        sides.append(found)
    return sides[0], sides[1]


def _nearest(order: Sequence[int], of: dict[int, int]) -> dict[int, int]:
    """Return, for each sentence in this order, the last shared group up to it."""
    last, found = _EDGE, {}
    for n in order:
        last = of.get(n, last)
        found[n] = last
    return found
