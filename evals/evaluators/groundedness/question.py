"""Find the question in a prompt."""

import re
from dataclasses import dataclass
from functools import lru_cache

from evals.evaluators.groundedness.tokens import tokens_of

_MAX_PROMPT = 20_000
"""Only this many characters at a prompt's end are read."""
_MAX_WORDS = 40
"""A prompt with more content words is not only a question."""
_LABELLED = re.compile(r"\b(?:question|query)\s*:\s*(\S[^\n]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question."""

    stems: frozenset[str] = frozenset()
    """Its content words; empty if the question in the prompt is not found."""
    numbers: frozenset[str] = frozenset()
    """The numbers of the whole prompt."""


def question_of(prompt: str, passages: tuple[str, ...]) -> Question:
    """Return the question in a prompt, which may contain the passages and instructions too.

    Of several labelled questions the last one counts; those before it are examples.
    """
    return _question_of(prompt[-_MAX_PROMPT:], passages)


@lru_cache(maxsize=16)
def _question_of(prompt: str, passages: tuple[str, ...]) -> Question:
    numbers = frozenset(t.form.stem for t in tokens_of(prompt) if t.form.is_number)
    rest = prompt
    for passage in passages:
        if passage.strip():
            rest = rest.replace(passage.strip(), "\n")
    if labelled := _LABELLED.findall(rest):
        rest = labelled[-1]
    stems = frozenset(t.form.stem for t in tokens_of(rest) if t.form.is_content)
    return Question(stems if len(stems) <= _MAX_WORDS else frozenset(), numbers)
