"""Sentences of an answer, with where they stand and what kind of sentence they are."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter

from evals.evaluators.groundedness.tokens import Token, tokens_of

MAX_WORDS = 60
"""A longer sentence is judged in pieces."""

_END = re.compile(r"[.!?。！？]+[\"'”’)\]]*(?=\s+[^a-z\s])|[。！？]|\n+")
_NO_END = re.compile(
    r"(?:^|[\s(])(?:\d{1,2}|[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Fig|Inc"
    r"|(?:[A-Z]\.)+[A-Z])\.$"
)
_ITEM = re.compile(r"\s*(?:[-*•–]\s+|\(?(?:\d{1,2}|[a-z])[.)]\s+)")
_REFUSAL = re.compile(
    r"\b(?:(?:can(?:no|')t|cannot|could not|couldn't|unable to|not able to|not possible to)\s+"
    r"(?:\w+\s+){0,2}?(?:answer|find|determine|tell|say|help|provide|be\s+(?:answered|determined))"
    r"|(?:no|not enough|insufficient|lack of)\s+(?:\w+\s+){0,2}?"
    r"(?:information|mention|details?|data)"
    r"|(?:do|does|did)(?: not|n't)\s+(?:\w+ly\s+)?(?:contain|mention|provide|say|specify|state|know"
    r"|include|have|give|address|offer|discuss)"
    r"|(?:is|are|was|were)(?: not|n't)\s+(?:\w+ly\s+)?(?:mentioned|provided|specified|stated|given"
    r"|available|included|discussed))\b",
    re.IGNORECASE,
)
_ABOUT_PASSAGES = re.compile(
    r"\b(?:passages?|context|documents?|texts?|sources?|notes?|articles?|information)\b",
    re.IGNORECASE,
)
_ATTRIBUTION = re.compile(
    r"\bpassages?\s+#?\d{1,2}(?:(?:\s*,\s*|\s+and\s+|\s*,\s+and\s+|\s*&\s*)\d{1,2})*\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer; `start` and `end` count characters."""

    text: str
    start: int
    end: int
    tokens: list[Token]
    """With offsets into the answer; a list item's number is not among them."""
    is_item: bool

    @property
    def is_refusal(self) -> bool:
        """Say whether it tells what the passages do not say."""
        return _REFUSAL.search(self.text) is not None

    @property
    def is_about_passages(self) -> bool:
        """Say whether it speaks of the passages themselves."""
        return _ABOUT_PASSAGES.search(self.text) is not None

    @property
    def attributed_to(self) -> tuple[int, ...]:
        """Return the numbers of the passages that it names."""
        named = " ".join(_ATTRIBUTION.findall(self.text))
        return tuple(int(number) for number in re.findall(r"\d+", named))


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences that have words."""
    tokens, found = _claimed(text), list[Sentence]()
    for start, end in _bounds(text):
        item = _ITEM.match(text, start, end)
        first = bisect_left(tokens, item.end() if item else start, key=attrgetter("start"))
        last = bisect_left(tokens, end, key=attrgetter("start"))
        for at in range(first, last, MAX_WORDS):
            part = tokens[at : min(at + MAX_WORDS, last)]
            whole = last - first <= MAX_WORDS
            begin, stop = (start, end) if whole else (part[0].start, part[-1].end)
            found.append(Sentence(text[begin:stop], begin, stop, part, item is not None))
    return found


def _claimed(text: str) -> list[Token]:
    """Return the words without those that only name a passage, such as `(Passage 2)`."""
    named = [match.span() for match in _ATTRIBUTION.finditer(text)]
    if not named:
        return tokens_of(text)
    starts = [start for start, _ in named]

    def inside(token: Token) -> bool:
        at = bisect_left(starts, token.end) - 1
        return at >= 0 and token.start < named[at][1]

    return [token for token in tokens_of(text) if not inside(token)]


def _bounds(text: str) -> list[tuple[int, int]]:
    """Return where sentences start and end, without the white space around them."""
    bounds, start = [], 0
    for match in _END.finditer(text):
        end = match.end()
        if match.group()[0] == "." and _NO_END.search(text[max(start, end - 12) : end]):
            continue
        bounds.append((start, end))
        start = end
    bounds.append((start, len(text)))
    return [
        (end - len(piece.lstrip()), start + len(piece.rstrip()))
        for start, end in bounds
        if (piece := text[start:end]).strip()
    ]
