"""An index of passages, built once for all answers that use them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness import number_words
from evals.evaluators.groundedness.acronyms import Acronyms, acronyms_of
from evals.evaluators.groundedness.conversions import Amount, amounts_of
from evals.evaluators.groundedness.dates import dates_of
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.tokens import Token, synonyms_of, tokens_of

STRIDE = 10
WINDOW = 40
"""Words in a window; windows overlap, so each word is in four of them."""
_HALF, _CENT = stem("half"), stem("cent")
_GAP = WINDOW
"""Empty places between passages, so that no window spans two."""
_NUMBERED = re.compile(r"^\s*passage\s+(\d{1,2})\s*:", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A range of characters in one passage."""

    passage: int
    start: int
    end: int


class Passages:
    """The words of all passages in order: the places of each word, and its neighbours.

    A place is an index into `places` and `row`. A word's id is an index into `positions`.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self.places: list[Token | None] = []
        self._starts: list[int] = []
        self._texts_of: list[int] = []
        self._labels: list[tuple[int, int]] = []
        self._words: list[tuple[list[Token], str]] = []
        """Each text's words, and the text."""
        self.pieces: list[PassageSpan] = []
        """The characters of each passage, including a label such as `Passage 2:`."""
        for number, text in enumerate(texts, start=1):
            self._append(number, text)
        self.dates, self.either_dates = dates_of(self.places)
        """Its dates, and those in digits of either order."""
        self.ids: dict[str, int] = {}
        self.row = [-1 if t is None else self._id(t.form.stem) for t in self.places]
        self.positions: list[list[int]] = [[] for _ in self.ids]
        for place, word in enumerate(self.row):
            if word >= 0:
                self.positions[word].append(place)
        self.row.append(-1)
        self.places.append(None)
        triples = list(zip(self.row, self.row[1:], self.row[2:], strict=False))
        # A gap has the id −1, like an absent word; pairs and triples across a gap do not count.
        self.pairs = frozenset(pair for pair in pairwise(self.row) if min(pair) >= 0)
        self.triples = frozenset(triple for triple in triples if min(triple) >= 0)
        self.between = {(a, c): p for p, (a, b, c) in enumerate(triples, 1) if min(a, b, c) >= 0}
        self.after = {(a, b): p for p, (a, b, _) in enumerate(triples, 2) if min(a, b) >= 0}
        content = [self.row[p] for p, t in enumerate(self.places) if t and t.form.is_content]
        self.content_pairs = frozenset(pairwise(content))
        self._windows, self._begins, self._window_count = self._windows_by_word()

    def support(self, words: Sequence[int], weights: Sequence[float]) -> NDArray[np.float64]:
        """Return each window's total weight of these words (ids)."""
        begins = self._begins
        lengths = [begins[word + 1] - begins[word] for word in words]
        if not words:
            return np.zeros(self._window_count)
        where = np.concatenate([self._windows[begins[w] : begins[w + 1]] for w in words])
        found = np.bincount(where, np.repeat(weights, lengths), minlength=self._window_count)
        return found.astype(np.float64)

    def number_of(self, token: Token) -> int:
        """Return the id of a word or of a synonym; −1 if the passages contain neither.

        A decimal such as `1.5` has the id of the end of `1 1/2`, `one and a half` or `50 cents`.
        """
        form = token.form
        number = self.ids.get(form.stem, -1)
        if number < 0 and form.is_number and "." in form.stem:
            return self._spelled_otherwise(form.stem)
        if number >= 0 or not form.is_content or form.is_number or token.is_name:
            return number
        return next((self.ids[other] for other in synonyms_of(form.stem) if other in self.ids), -1)

    def _spelled_otherwise(self, decimal: str) -> int:
        """Return the id of the last word of a decimal that the passages spell otherwise, or −1."""
        whole, _, decimals = decimal.partition(".")
        spelled = [number_words.fraction(decimal)]
        if decimals == "5":
            known = {"0": (), "1": ("one", "and", "a")}.get(whole, (whole, "and", "a"))
            spelled.append((*known, _HALF))
        if whole == "0" and len(decimals) <= 2 and decimals.isdecimal():
            spelled.append((decimals.ljust(2, "0").lstrip("0"), _CENT))
        for words in filter(None, spelled):
            ids = [self.ids.get(word, -1) for word in words]
            if -1 not in ids and self.pairs.issuperset(pairwise(ids)):
                return ids[-1]
        return -1

    @cached_property
    def amounts(self) -> Sequence[Amount]:
        """Their numbers with a unit, and their fractions; only pairs of answers need them."""
        return [amount for words in self._words for amount in amounts_of(*words)]

    @cached_property
    def acronyms(self) -> Acronyms:
        """Those that they define; of two names for one, the first."""
        return dict(chain.from_iterable(acronyms_of(*words).items() for words in self._words[::-1]))

    @property
    def is_empty(self) -> bool:
        """Whether the passages contain no words."""
        return not self.ids

    def span(self, start: int, end: int) -> PassageSpan | None:
        """Return the characters of places in `range(start, end)`, cut at the first passage's end.

        `None` if no word is there.
        """
        begin = next((p for p in range(max(start, 0), end) if self.places[p]), None)
        if begin is None:
            return None
        piece = bisect_right(self._starts, begin) - 1
        until = self._starts[piece + 1] if piece + 1 < len(self._starts) else len(self.places)
        held = [t for t in self.places[begin : min(end, until)] if t is not None]
        return PassageSpan(self._texts_of[piece], held[0].start, held[-1].end)

    def labelled(self, number: int) -> tuple[int, int] | None:
        """Return the start and end place of the passage that has this number; `None` if none."""
        for at, (name, start) in enumerate(self._labels):
            if name == number:
                later = [s for _, s in self._labels[at + 1 :]]
                return start, later[0] if later else len(self.places)
        return None

    def lacks(self, number: int) -> bool:
        """Return whether there are several passages, none of which has this number."""
        several = len({label for label, _ in self._labels} - {0}) > 1
        return several and self.labelled(number) is None

    def _append(self, number: int, text: str) -> None:
        """Add a text; one that contains numbered passages is added as several passages."""
        tokens = tokens_of(text)
        self._words.append((tokens, text))
        marked = 0
        for label, begin, end in _pieces(text, number):
            self.pieces.append(PassageSpan(number - 1, marked, end))
            marked = end
            if self.places:
                self.places += [None] * _GAP
            self._starts.append(len(self.places))
            self._texts_of.append(number - 1)
            self._labels.append((label, len(self.places)))
            first, last = (bisect_left(tokens, at, key=attrgetter("start")) for at in (begin, end))
            self.places += tokens[first:last]

    def _id(self, stem: str) -> int:
        return self.ids.setdefault(stem, len(self.ids))

    def _windows_by_word(self) -> tuple[NDArray[np.int64], list[int], int]:
        """Return the windows of each word, word by word; where each word begins; all windows."""
        row = np.asarray(self.row, dtype=np.int64)
        count = max(1, -(-(len(row) - WINDOW) // STRIDE) + 1)
        place = np.flatnonzero(row >= 0)
        windows = place[:, None] // STRIDE - np.arange(WINDOW // STRIDE)
        inside = (windows >= 0) & (windows < count)
        keys = np.unique((row[place][:, None] * count + windows)[inside])
        begins = np.searchsorted(keys, np.arange(len(self.ids) + 1) * count)
        return keys % count, begins.tolist(), count


def _pieces(text: str, number: int) -> list[tuple[int, int, int]]:
    """Return the passages within a text: each one's number, first character and end."""
    marks = list(_NUMBERED.finditer(text))
    if not marks:
        return [(number, 0, len(text))]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    pieces = [(int(m.group(1)), m.end(), e) for m, e in zip(marks, ends, strict=True)]
    before = marks[0].start()
    return [(0, 0, before), *pieces] if text[:before].strip() else pieces
