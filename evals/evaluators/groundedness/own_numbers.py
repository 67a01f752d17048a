"""Numbers that an answer makes itself: results of its calculations, and counts of what it names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evals.evaluators.groundedness.arithmetic import Equation
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.question import Question
from evals.evaluators.groundedness.sentences import Sentence

_CONSTANTS = frozenset(["2", "7", "10", "12", "24", "30", "52", "60", "100", "365", "1000"])
"""Numbers that a calculation may use although no passage has them."""
_COUNTING = re.compile(
    r":\W*$|\b(?:following|above|below|listed|mentioned|here are|there are|in total)\b",
    re.IGNORECASE,
)
"""In a sentence that may count the answer's own list."""
_ABOUT_TEXT = re.compile(
    r"\b(?:passages?|texts?|articles?|documents?|excerpts?|summary|information) "
    r"(?:also )?(?:about|on|provides? (?:information|details) (?:about|on)|(?:talks?|is|are) about"
    r"|(?:discuss|describ|mention|cover|list|contain|present|introduc|summari[sz]|compar)\w*"
    r"|refers? to) (?:the |these )?(?P<count>[a-z]+|\d)"
    r"(?: (?!and\b|or\b)[a-z-]+){0,3}? (?:topics?|subjects?|individuals?|persons?|people|things"
    r"|entities|events|works|stories|points|items|aspects|matters|figures|articles)\b",
    re.IGNORECASE,
)
"""How many subjects the passages have: a count that they do not make themselves."""


@dataclass(frozen=True, slots=True)
class OwnNumbers:
    """Stems of numbers that an answer makes itself and that no passage has."""

    results: frozenset[str]
    """Right results of equations whose terms are known."""
    counts: frozenset[str]
    """How many items its list has."""

    def without(self, sentence: Sentence) -> Sentence:
        """Return a sentence without the words of these numbers, which claim nothing."""
        own = self.results
        if self.counts and _COUNTING.search(sentence.text):
            own |= self.counts
        count = _ABOUT_TEXT.search(sentence.text)
        counted = sentence.start + count.start("count") if count else -1
        if not own and count is None:
            return sentence
        tokens = [
            token
            for token in sentence.tokens
            if not token.form.is_number or not (token.form.stem in own or token.start == counted)
        ]
        return replace(sentence, tokens=tokens)


def own_numbers(
    sentences: Sequence[Sentence], sums: Iterable[Equation], passages: Passages, question: Question
) -> OwnNumbers:
    """Return the numbers that an answer calculates, and those that count its list."""
    results = set[str]()

    def is_known(digits: str) -> bool:
        return digits in passages.ids or digits in question.numbers or digits in results

    for one in sums:
        terms = {token.form.stem for token in one.terms}
        known = {term for term in terms if is_known(term)}
        shares = {term for term in terms if is_known(_as_percent(term))}
        if one.is_right and known and terms <= known | shares | _CONSTANTS:
            results |= shares | {one.result.form.stem}
    items = sum(sentence.is_item for sentence in sentences)
    counts = {str(items)} if items > 1 else set[str]()
    return OwnNumbers(*(frozenset(own - passages.ids.keys()) for own in (results, counts)))


def _as_percent(digits: str) -> str:
    """Return the percentage of a decimal below 1, such as 4 for 0.04; empty for any other."""
    return f"{100 * float(digits):.6g}" if digits.startswith("0.") else ""
