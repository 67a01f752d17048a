"""Which sentences two answers to one prompt share, and which stand in each other's place."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from evals.evaluators.groundedness.same_meaning import Key, is_same, key

LEAST_ALIKE = 0.5
"""Share of words in common from which on two sentences are variants of one."""
_MAX_COMPARED = 60
"""Of longer lists of differing sentences only those at about the same place are compared."""
_MAX_RUN = 12
"""Sentences that may come to one of the other answer."""
_EDGE = -1

Group = tuple[tuple[int, ...], tuple[int, ...]]
"""Sentences of ours that say the same as sentences of theirs, by their numbers."""

__all__ = ["Group", "Key", "SentenceMatch", "key", "twins"]


class SentenceMatch(NamedTuple):
    """Two answers' sentences, by their numbers."""

    shared: tuple[Group, ...]
    """What both say: in the same words, or in words that mean the same."""
    pairs: tuple[tuple[int, int], ...]
    """Sentences that differ, and stand for each other: our number, then theirs."""
    ours: tuple[int, ...]
    """Sentences of ours that neither stand in the other answer nor have a counterpart there."""
    theirs: tuple[int, ...]

    def exchanged(self) -> "SentenceMatch":
        """Return the same from the other answer's side."""
        shared = tuple(sorted((b, a) for a, b in self.shared))
        pairs = tuple(sorted((b, a) for a, b in self.pairs))
        return SentenceMatch(shared, pairs, self.theirs, self.ours)


def twins(ours: Sequence[Key], theirs: Sequence[Key]) -> SentenceMatch:
    """Compare two answers by their sentences' keys.

    With the answers exchanged the result is the same, exchanged.
    """
    shared = _equal(ours, theirs)
    shared += _split_otherwise(ours, theirs, shared)
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
    """Return the sentences of both sides that stand in no group."""
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


def _split_otherwise(
    ours: Sequence[Key], theirs: Sequence[Key], shared: Sequence[Group]
) -> list[Group]:
    """Return runs of sentences that say the same, split into sentences otherwise.

    They are looked for from both ends of what stands between shared sentences.
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
    """Return the first sentences of two lists that come to the same words, `None` if none do."""
    if not left or not right:
        return None
    a, b = 1, 1
    while True:
        one = _whole([ours[n] for n in left[:a]], backwards=backwards)
        other = _whole([theirs[n] for n in right[:b]], backwards=backwards)
        if len(one.words) == len(other.words):
            return (tuple(left[:a]), tuple(right[:b])) if is_same(one, other) else None
        if len(one.words) < len(other.words):
            a += 1
        else:
            b += 1
        if a > min(len(left), _MAX_RUN) or b > min(len(right), _MAX_RUN):
            return None


def _whole(keys: Sequence[Key], *, backwards: bool) -> Key:
    keys = keys[::-1] if backwards else keys
    return Key(
        tuple(word for one in keys for word in one.words),
        tuple(number for one in keys for number in one.attributed_to),
    )


def _variants(
    left: Sequence[int], right: Sequence[int], ours: Sequence[Key], theirs: Sequence[Key]
) -> list[tuple[int, int]]:
    """Return the sentences that are most alike, each once, the likest first."""
    sets = {b: frozenset(theirs[b].words) for b in right}
    found = []
    for n, a in enumerate(left):
        own = frozenset(ours[a].words)
        for b in right[max(n - _MAX_COMPARED, 0) : n + _MAX_COMPARED + 1]:
            alike = 2 * len(own & sets[b]) / max(len(own) + len(sets[b]), 1)
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
    left: Sequence[int], right: Sequence[int], shared: Sequence[Group]
) -> list[tuple[int, int]]:
    """Return the sentences that stand, in their order, between the same shared ones."""
    here, there = _places((left, right), shared)
    inner = [place for place in here if place != (_EDGE, _EDGE)]
    return [
        pair for place in inner for pair in zip(here[place], there.get(place, ()), strict=False)
    ]


Places = dict[tuple[int, int], list[int]]
"""Sentences by the shared groups before and behind them; `_EDGE` is an answer's end."""


def _places(
    numbers: tuple[Sequence[int], Sequence[int]], shared: Sequence[Group]
) -> tuple[Places, Places]:
    """Return which of both sides' sentences stand between which shared ones."""
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
    """Return for each sentence the last shared group up to it."""
    last, found = _EDGE, {}
    for n in order:
        last = of.get(n, last)
        found[n] = last
    return found
