"""Tell whether the only difference between two sentences makes one of them wrong."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from evals.evaluators.groundedness.features import WordIds
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.tokens import Token, form_of

_PREPOSITION_LIST = """
for in by with from at during after before under near through among without since until on to
"""
_PREPOSITIONS = frozenset(_PREPOSITION_LIST.split())
_EMPTY_LIST = """
general particular addition total fact example instance short practice principle theory case order
contrast turn return summary conclusion detail mind advance time way sense point effect comparison
people others individuals someone everyone anyone something purpose purposes reason reasons
"""
_EMPTY = frozenset(form_of(word).stem for word in _EMPTY_LIST.split())
"""Nouns of phrases that add nothing, such as `in general`, `for example`."""


def is_wrong(ours: WordIds, theirs: WordIds, passages: Passages) -> bool:
    """Return whether the only difference from the other sentence makes ours wrong.

    It does if it is a phrase that begins with a preposition and of which the passages lack most
    words; or another tense of a verb than the passages have everywhere, and the other sentence too.
    """
    a, b = ([(t.form.stem, t.form.is_past) for t in words.tokens] for words in (theirs, ours))
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    differing = [code for code in codes if code[0] != "equal"]
    if len(differing) != 1:
        return False
    kind, there, there_end, start, end = differing[0]
    if kind == "insert":
        is_phrase = ours.tokens[start].form.stem in _PREPOSITIONS
        return is_phrase and _is_absent(ours.tokens[start:end], ours.rows[start:end])
    one, other = ours.tokens[start:end], theirs.tokens[there:there_end]
    return len(one) == len(other) == 1 and _has_other_tense(one[0], other[0], passages)


def _has_other_tense(token: Token, other: Token, passages: Passages) -> bool:
    number = passages.ids.get(token.form.stem, -1)
    if number < 0 or token.form.stem != other.form.stem or not token.form.is_content:
        return False
    held = (passages.places[place] for place in passages.positions[number])
    return all(each is not None and each.form.is_past == other.form.is_past for each in held)


def _is_absent(tokens: Sequence[Token], rows: Sequence[int]) -> bool:
    """Return whether the passages lack more than half of the words that mean something."""
    absent = [
        row < 0
        for token, row in zip(tokens, rows, strict=True)
        if token.form.is_content and token.form.stem not in _EMPTY
    ]
    return 2 * sum(absent) > len(absent)
