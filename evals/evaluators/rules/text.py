"""Rules for text: exact words, a short answer to a question, a number."""

import math
import re
import string
from collections import Counter

from evals.evaluators.reference import ExactText, Number, QaAnswers
from evals.evaluators.rules.outcome import RuleResult

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")


def exact(answer: str, reference: ExactText) -> RuleResult:
    """Compare word by word; white space does not matter."""
    got, wanted = answer.split(), reference.text.split()
    if got == wanted:
        return RuleResult(1.0)
    same = next((i for i, (g, w) in enumerate(zip(got, wanted, strict=False)) if g != w), None)
    at = min(len(got), len(wanted)) if same is None else same
    return RuleResult(0.0, f"word {at + 1}: wanted {_word(wanted, at)}, got {_word(got, at)}")


def qa(answer: str, reference: QaAnswers) -> RuleResult:
    """Compare with the accepted answer that fits best.

    Text is lower-cased and stripped of punctuation and articles, as in SQuAD's evaluation.
    `contains` wants the accepted answer's words in a row; `f1` is the harmonic mean of precision
    and recall over words.
    """
    got = _normal(answer)
    wanted = [_normal(text) for text in reference.answers]
    if reference.match == "f1":
        best = max(_f1(got, words) for words in wanted)
        return RuleResult(best, None if best == 1.0 else f"F1 {best:.2f}, {_accepted(reference)}")
    if reference.match == "contains":
        right = any(_contains(got, words) for words in wanted)
    else:
        right = got in wanted
    return RuleResult.of(None if right else f"{_accepted(reference)}, got {answer.strip()[:60]!r}")


def number(answer: str, reference: Number) -> RuleResult:
    """Compare the last number in the answer, with or without thousands' commas."""
    written = [text for text in _NUMBER.findall(answer) if any(c.isdigit() for c in text)]
    if not written:
        return RuleResult(0.0, f"wanted {reference.value:g}, got no number")
    got = float(written[-1].replace(",", "").replace("−", "-"))
    close = math.isclose(got, reference.value, rel_tol=reference.rel_tol, abs_tol=reference.abs_tol)
    return RuleResult.of(None if close else f"wanted {reference.value:g}, got {written[-1][:40]}")


def _word(words: list[str], at: int) -> str:
    return repr(words[at][:60]) if at < len(words) else "the end"


def _accepted(reference: QaAnswers) -> str:
    first, *others = reference.answers
    return f"wanted {first[:60]!r}" + (f" or one of {len(others)} others" if others else "")


def _normal(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _contains(words: list[str], part: list[str]) -> bool:
    length = len(part)
    return any(words[at : at + length] == part for at in range(len(words) - length + 1))


def _f1(got: list[str], wanted: list[str]) -> float:
    if not got or not wanted:
        return float(got == wanted)
    shared = sum((Counter(got) & Counter(wanted)).values())
    return 2 * shared / (len(got) + len(wanted))
