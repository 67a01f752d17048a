"""Read verbs whose form depends on the words around them: `is given`, `a ticket cost 5 euros`."""

from collections.abc import Sequence

from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import Token

_PARTICIPLES = {
    "given": "give", "known": "know", "left": "leave", "lost": "lose", "bound": "bind",
    "wound": "wind", "ground": "grind", "bent": "bend", "hidden": "hide",
    "thought": "think", "drawn": "draw", "broken": "break", "worn": "wear", "torn": "tear",
    "frozen": "freeze",
}  # fmt: skip
"""Participles that are also other words."""
_AS_STEMS = {stem(participle): stem(base) for participle, base in _PARTICIPLES.items()}
_AUXILIARY_LIST = "is are was were be been being am has have had having"
_AUXILIARIES = frozenset(_AUXILIARY_LIST.split())
_SAME_IN_PAST_LIST = "cost put set cut hit let shut hurt quit split spread beat"
_SAME_IN_PAST = frozenset(map(stem, _SAME_IN_PAST_LIST.split()))
_SINGULAR = frozenset(["he", "she", "it"])
_ONE_LIST = "a an the this that each every its his her their our my your"
_ONE = frozenset(_ONE_LIST.split())
_OBJECT_LIST = "a an the them him her it us you me its his their"
_OBJECT = frozenset(_OBJECT_LIST.split())


def in_context(tokens: list[Token]) -> list[Token]:
    """Return the tokens with participles as past forms of their verbs.

    A verb that has the same form in the past is past behind a singular subject and before an
    object or a number.
    """
    for at in range(1, len(tokens)):
        token = tokens[at]
        is_known = token.form.stem in _AS_STEMS and not (token.form.is_past or token.is_name)
        if is_known and _is_participle(tokens, at):
            form = token.form._replace(stem=_AS_STEMS[token.form.stem], is_past=True)
            tokens[at] = token._replace(form=form)
        elif token.form.stem in _SAME_IN_PAST and _is_past(tokens, at):
            tokens[at] = token._replace(form=token.form._replace(is_past=True))
    return tokens


def _is_participle(tokens: Sequence[Token], at: int) -> bool:
    near = [token.form.stem for token in tokens[max(at - 2, 0) : at]]
    return near[-1] in _AUXILIARIES or (
        near[0] in _AUXILIARIES and (near[-1].endswith("ly") or tokens[at - 1].form.is_negator)
    )


def _is_past(tokens: Sequence[Token], at: int) -> bool:
    token, before = tokens[at], tokens[at - 1]
    is_bare = token.end - token.start == len(token.form.stem)
    if not is_bare or at + 1 == len(tokens):
        return False
    behind = tokens[at + 1].form
    has_object = behind.is_number or behind.stem in _OBJECT
    is_singular = before.end - before.start == len(before.form.stem)
    named = at > 1 and is_singular and tokens[at - 2].form.stem in _ONE
    return has_object and (before.form.stem in _SINGULAR or named)
