"""Split an answer into sentences, with their offsets and kinds."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter

from evals.evaluators.groundedness.courtesies import announcement, courtesy_behind, is_courtesy
from evals.evaluators.groundedness.plain import plain
from evals.evaluators.groundedness.refusals import REFUSAL, claims_beside
from evals.evaluators.groundedness.tokens import Token, tokens_of

MAX_WORDS = 60
"""A longer sentence is judged in pieces of this length."""

_END = re.compile(r"[.!?…。！？]+[\"'”’)\]]*(?=\s+[^a-z\s])|[。！？]|\n+")
_NO_END = re.compile(
    r"(?:^|[\s(])(?:\d{1,2}|(?<!\d\s)[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e"
    r"|approx|No|Fig|Inc|Mon|Tues?|Wed|Thu|Thurs?|Fri|Mt|Ft|Gen|Sen|Gov|Capt|Lt|Sgt|Rev"
    r"|Jan|Feb|Apr|Aug|Sept?|Oct|Nov|Dec|al"
    r"|(?:[A-Z]\.)+[A-Z])\.$"
)
_NO_END_BEFORE_BRACKET = re.compile(
    r"\d\s?(?:sq\.\s?)?(?:in|ft|yd|mi|oz|lbs?|tsp|tbsp|min|hrs?|secs?)\.\s+\(\Z"
)
_ITEM = re.compile(
    r"\s*(?:#{1,6}\s+|>\s+|[^\w\s\x21-\x7e°±×÷€£¥₹≈≤≥]{1,3}\s+)?"
    r"(?:[-*•–]\s+(?:\[[ xX]\]\s+)?|\(?[*_]*(?:\d{1,2}|[a-zA-Z])[*_]*[.)][*_]*\s+"
    r"|\d{1,2}[:/]\s+|#\d{1,2}[:.)]?\s+"
    r"|\d{1,2}\ufe0f?\u20e3\s*|[*_]*[Ss]tep \d{1,2}[*_]*[.:)][*_]*\s+)"
)
_LABEL = re.compile(r"(?:[-*•–\s]|\(?\d{1,2}[.):]*(?!\S))*|[\W_]*")
"""Text that is only a list item's bullet or number, or has no word."""
_ABOUT_PASSAGES = re.compile(
    r"\b(?:passages?|context|documents?|texts?|sources?|notes?|articles?|information)\b",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r"\b(?:passages?|documents?|sources?|articles?|excerpts?|texts?)\s+[#*_]{0,3}"
    r"(?:\d{1,2}|one|two|three|four|five)(?:(?:\s*,\s*|\s+and\s+|\s*,\s+and\s+|\s*&\s*)\d{1,2})*\b"
    r"|\b(?:first|1st|second|2nd|third|3rd|fourth|4th|fifth|5th)\s+"
    r"(?:passage|document|source|article|excerpt)\b",
    re.IGNORECASE,
)
_CITED = re.compile(
    r"\b(?:passage|document|source|excerpt)\s+[#*_]{0,3}(\d{1,2}|one|two|three|four|five)\b"
    r"|\b(?:passages|documents|sources|excerpts)\s+"
    r"(\d{1,2}(?:(?:\s*,\s*|\s+and\s+|\s*,\s+and\s+|\s*&\s*)\d{1,2})*)\b",
    re.IGNORECASE,
)
"""Numbers that can only be those of passages: of one, or of a list after the plural."""
_NUMBERS = {
    word: number
    for words in ("first second third fourth fifth", "one two three four five")
    for number, word in enumerate(words.split(), 1)
}
_NUMBER = re.compile(r"\d+|" + "|".join(_NUMBERS))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer; `start` and `end` are character offsets."""

    text: str
    start: int
    end: int
    tokens: list[Token]
    """Tokens with offsets into the answer, without a list item's number."""
    is_item: bool

    @property
    def is_refusal(self) -> bool:
        """Whether it says that the passages lack something."""
        return _is_refusal(self.text)

    @property
    def is_about_passages(self) -> bool:
        """Whether it mentions the passages themselves."""
        return _ABOUT_PASSAGES.search(self.text) is not None

    @property
    def attributed_to(self) -> tuple[int, ...]:
        """Numbers of the passages that it names."""
        return named_passages(self.text)


@lru_cache(maxsize=4096)
def _is_refusal(text: str) -> bool:
    return REFUSAL.search(plain(text)) is not None


@lru_cache(maxsize=4096)
def named_passages(text: str) -> tuple[int, ...]:
    """Return the numbers of the passages that a text names, in their order there."""
    named = " ".join(_ATTRIBUTION.findall(plain(text))).lower()
    return tuple(_numbers(named))


def cited_passages(text: str) -> tuple[int, ...]:
    """Return the numbers that certainly name passages, in their order in the text."""
    numbers = (one or several for one, several in _CITED.findall(plain(text)))
    return tuple(number for part in numbers for number in _numbers(part.lower()))


def _numbers(text: str) -> Iterator[int]:
    """Yield the numbers in lower-case text, in digits or as words."""
    for word in _NUMBER.findall(text):
        yield _NUMBERS[word] if word in _NUMBERS else int(word)


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences that have words, without courtesies and questions at both ends.

    If the text has nothing else, they are returned.
    """
    blank = plain(text)
    skipped = announcement(blank)
    tokens, found = _tokens_without_references(blank), list[Sentence]()
    bounds = [b for b in _bounds(blank, skipped) if not _LABEL.fullmatch(blank, *b)]
    for start, end in _between_courtesies(blank, bounds) or _bounds(blank, 0):
        item = _ITEM.match(blank, start, end)
        first = bisect_left(tokens, item.end() if item else start, key=attrgetter("start"))
        last = bisect_left(tokens, end, key=attrgetter("start"))
        for at in range(first, last, MAX_WORDS):
            part = tokens[at : min(at + MAX_WORDS, last)]
            whole = last - first <= MAX_WORDS
            begin, stop = (start, end) if whole else (part[0].start, part[-1].end)
            found.append(Sentence(text[begin:stop], begin, stop, part, item is not None))
    return found


def _between_courtesies(text: str, bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the bounds without those of leading and trailing courtesies and questions."""
    first, last = 0, len(bounds)
    while last > first and _claims_nothing(text, *bounds[last - 1]):
        last -= 1
    while first < last and _claims_nothing(text, *bounds[first]):
        first += 1
    return bounds[first:last]


def _claims_nothing(text: str, start: int, end: int) -> bool:
    item = _ITEM.match(text, start, end)
    return text[end - 1] == "?" or is_courtesy(text[item.end() if item else start : end])


def _tokens_without_references(text: str) -> list[Token]:
    """Return the words, except those that only name a passage, such as `(Passage 2)`."""
    named = [match.span() for match in _ATTRIBUTION.finditer(text)]
    if not named:
        return tokens_of(text)
    starts = [start for start, _ in named]

    def inside(token: Token) -> bool:
        at = bisect_left(starts, token.end) - 1
        return at >= 0 and token.start < named[at][1]

    return [token for token in tokens_of(text) if not inside(token)]


def _bounds(text: str, skipped: int) -> list[tuple[int, int]]:
    """Return the start and end of each sentence, without surrounding white space."""
    bounds, start = [], skipped
    for match in _END.finditer(text, skipped):
        end = match.end()
        before = text[max(start, end - 12) : end]
        if match.group()[0] == "." and (
            _NO_END.search(before) or _NO_END_BEFORE_BRACKET.search(before + text[end : end + 2])
        ):
            continue
        bounds += list(pairwise([start, *claims_beside(text, start, end), end]))
        start = end
    behind = courtesy_behind(text, start, len(text))
    end = len(text) if behind is None else behind
    bounds += list(pairwise([start, *claims_beside(text, start, end), end]))
    bounds += [] if behind is None else [(behind, len(text))]
    return [
        (end - len(piece.lstrip()), start + len(piece.rstrip()))
        for start, end in bounds
        if (piece := text[start:end]).strip()
    ]
