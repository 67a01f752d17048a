"""What was asked, by the words of the prompt."""

import re
from dataclasses import dataclass
from functools import lru_cache

from evals.evaluators.groundedness.tokens import tokens_of

_MAX_PROMPT = 20_000
"""Characters at the end of a longer prompt that are looked through."""
_MAX_WORDS = 40
"""Content words from which on a prompt is more than a question."""
_LABELLED = re.compile(r"\b(?:question|query)\s*:\s*(\S[^\n]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question."""

    stems: frozenset[str] = frozenset()
    """Its content words; none where it is not known what of a prompt the question is."""
    numbers: frozenset[str] = frozenset()
    """The numbers of the whole prompt."""


def asked(prompt: str, passages: tuple[str, ...]) -> Question:
    """Return the question of a prompt, which may hold the passages and instructions, too.

    Of several that are labelled as such the last one is asked; those before it are examples.
    """
    return _asked(prompt[-_MAX_PROMPT:], passages)


@lru_cache(maxsize=16)
def _asked(prompt: str, passages: tuple[str, ...]) -> Question:
    numbers = frozenset(t.form.stem for t in tokens_of(prompt) if t.form.is_number)
    rest = prompt
    for passage in passages:
        if passage.strip():
            rest = rest.replace(passage.strip(), "\n")
    if labelled := _LABELLED.findall(rest):
        rest = labelled[-1]
    stems = frozenset(t.form.stem for t in tokens_of(rest) if t.form.is_content)
    return Question(stems if len(stems) <= _MAX_WORDS else frozenset(), numbers)
