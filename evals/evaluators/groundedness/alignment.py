"""Compare a sentence with its nearest stretch of the passages and list the differences."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from evals.evaluators.groundedness.lexicon import ANTONYM_PAIRS
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.tokens import Token, form_of

NEGATION_REACH = 4
NEIGHBOURS = 4
"""Content words on either side of a number or name that count as its neighbours."""
CONTEXT_REACH = 10
MAX_OCCURRENCES = 24


@dataclass(slots=True)
class Differences:
    """Differences between a sentence and its stretch; pairs are (sentence, stretch).

    Swapped and negated words are stems; `antonyms` has the sentence's word as written.
    """

    numbers_swapped: list[tuple[str, str]] = field(default_factory=list)
    names_swapped: list[tuple[str, str]] = field(default_factory=list)
    words_swapped: list[tuple[str, str]] = field(default_factory=list)
    antonyms: list[tuple[str, str]] = field(default_factory=list)
    negations_added: list[str] = field(default_factory=list)
    negations_dropped: list[str] = field(default_factory=list)
    matched: int = 0
    backwards: int = 0
    """Successive matched words that are in reverse order in the stretch."""
    names_backwards: int = 0


def differences(
    tokens: Sequence[Token], text: str, passages: Passages, start: int, end: int
) -> Differences:
    """Compare a sentence with the passages' places in `range(start, end)`."""
    stretch = [(p, t) for p in range(start, end) if (t := passages.places[p]) is not None]
    where: dict[str, list[int]] = {}
    for at, (_, token) in enumerate(stretch):
        if token.form.is_content:
            where.setdefault(token.form.stem, []).append(at)
    words = [t for _, t in stretch]
    content = [t for t in tokens if t.form.is_content]
    matched = _matched(content, where)
    found = Differences(matched=sum(m is not None for m in matched))
    _compare_order(content, matched, found)
    _compare_negation(tokens, content, matched, words, found)
    own_stems = {t.form.stem for t in content}
    _find_antonyms(tokens, text, where, words, own_stems, found)
    _find_swaps(content, matched, words, own_stems, found)
    return found


def _matched(content: Sequence[Token], where: dict[str, list[int]]) -> list[int | None]:
    """Return each content word's index in the stretch, `None` if it is absent.

    Of several occurrences, the first after the previous matched word is taken.
    """
    places: list[int | None] = []
    before = -1
    for token in content:
        candidates = where.get(token.form.stem)
        if candidates is None:
            places.append(None)
            continue
        later = [c for c in candidates if c > before]
        before = later[0] if later and before >= 0 else candidates[0]
        places.append(before)
    return places


def _compare_order(
    content: Sequence[Token], matched: Sequence[int | None], found: Differences
) -> None:
    before = name_before = -1
    for token, place in zip(content, matched, strict=True):
        if place is None:
            continue
        found.backwards += place < before
        before = place
        if token.is_name or token.form.is_number:
            found.names_backwards += place < name_before
            name_before = place


def _negated(tokens: Sequence[Token]) -> set[int]:
    """Return the indices of words within `NEGATION_REACH` after a negator."""
    reached, left = set[int](), 0
    for at, token in enumerate(tokens):
        if token.form.is_negator:
            left = NEGATION_REACH
        elif left > 0:
            reached.add(at)
            left -= 1
    return reached


def _compare_negation(
    tokens: Sequence[Token],
    content: Sequence[Token],
    matched: Sequence[int | None],
    words: Sequence[Token],
    found: Differences,
) -> None:
    ours, theirs = _negated(tokens), _negated(words)
    if not ours and not theirs:
        return
    numbers = {token.start: at for at, token in enumerate(tokens)}
    for token, place in zip(content, matched, strict=True):
        if place is None:
            continue
        here, there = numbers[token.start] in ours, place in theirs
        if here and not there:
            found.negations_added.append(token.form.stem)
        elif there and not here:
            found.negations_dropped.append(token.form.stem)


def _find_antonyms(
    tokens: Sequence[Token],
    text: str,
    where: dict[str, list[int]],
    words: Sequence[Token],
    own_stems: set[str],
    found: Differences,
) -> None:
    known = opposites()
    stems = where.keys() | {t.form.stem for t in words}
    for token in tokens:
        stem = token.form.stem
        if stem in stems:
            continue
        for other in known.get(stem, ()):
            if other in stems and other not in own_stems:
                found.antonyms.append((text[token.start : token.end], other))


@cache
def opposites() -> dict[str, tuple[str, ...]]:
    """Return the stems of each stem's antonyms."""
    found: dict[str, set[str]] = {}
    for one, other in ANTONYM_PAIRS:
        a, b = form_of(one).stem, form_of(other).stem
        if a != b:
            found.setdefault(a, set()).add(b)
            found.setdefault(b, set()).add(a)
    return {stem: tuple(sorted(others)) for stem, others in found.items()}


def _find_swaps(
    content: Sequence[Token],
    matched: Sequence[int | None],
    words: Sequence[Token],
    own_stems: set[str],
    found: Differences,
) -> None:
    """Find words in whose place the stretch has another word beside the same neighbours."""
    for at, place in enumerate(matched):
        if place is not None:
            continue
        left = matched[at - 1] if at else None
        right = matched[at + 1] if at + 1 < len(matched) else None
        other = _other_between(words, left, right, own_stems)
        if other is None:
            continue
        token = content[at]
        pair = (token.form.stem, other.form.stem)
        if token.form.is_number and other.form.is_number:
            found.numbers_swapped.append(pair)
        elif token.is_name and other.is_name:
            found.names_swapped.append(pair)
        else:
            found.words_swapped.append(pair)


def _other_between(
    words: Sequence[Token], left: int | None, right: int | None, own_stems: set[str]
) -> Token | None:
    """Return the content word beside matched neighbours that the sentence lacks, if it is one."""
    if left is not None and right is not None:
        if not 0 < right - left <= 6:
            return None
        inside = words[left + 1 : right]
    elif left is not None:
        inside = words[left + 1 : left + 3]
    elif right is not None:
        inside = words[max(right - 2, 0) : right]
    else:
        return None
    others = [w for w in inside if w.form.is_content and w.form.stem not in own_stems]
    return others[0] if len(others) == 1 else None


def company(at: int, content: Sequence[int], weights: Sequence[float], passages: Passages) -> float:
    """Return the weighted share of a word's neighbours that are near it in the passages.

    The maximum over its occurrences in the passages. `content` has the passages' ids of the
    sentence's content words, −1 for absent ones. 1 if the word has no neighbours.
    """
    near = {
        content[i]: weights[i]
        for i in range(max(at - NEIGHBOURS, 0), min(at + NEIGHBOURS + 1, len(content)))
        if i != at
    }
    near.pop(content[at], None)
    total = sum(near.values())
    if total == 0:
        return 1.0
    best, row = 0.0, passages.row
    for place in passages.positions[content[at]][:MAX_OCCURRENCES]:
        around = set(row[max(place - CONTEXT_REACH, 0) : place + CONTEXT_REACH + 1])
        best = max(best, sum(weight for word, weight in near.items() if word in around))
    return best / total
