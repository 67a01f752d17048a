"""Whether a text is in the language that the model was trained and measured on."""

import re

from evals.evaluators.groundedness.lexicon import FOREIGN_FUNCTION_WORDS, STOP_WORDS

_LETTERS = re.compile(r"[^\W\d_]+")
_FEWEST_WORDS = 6
_READ_CHARACTERS = 4_000
_NOT_ENGLISH = "the answer is not in English, which this evaluator was trained and measured on"


def why_unreadable(text: str) -> str | None:
    """Say why an answer cannot be judged for its language, `None` where it can."""
    words = _LETTERS.findall(text[:_READ_CHARACTERS].lower())
    letters = "".join(words)
    latin = sum(letter < "\u0250" for letter in letters)
    if letters and latin < len(letters) / 2:
        return _NOT_ENGLISH
    foreign = sum(word in FOREIGN_FUNCTION_WORDS for word in words)
    english = sum(word in STOP_WORDS for word in words)
    return _NOT_ENGLISH if len(words) >= _FEWEST_WORDS and foreign > english else None
