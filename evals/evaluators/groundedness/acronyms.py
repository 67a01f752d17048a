"""Names with their acronyms: `Dearness Allowance (DA)`, `DA` and `Dearness Allowance`."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from evals.evaluators.groundedness.token import NormalForm, Token

_SHORT = r"[A-Z][A-Za-z]{0,6}[A-Z]s?"
_MARK = re.compile(rf"\(\s?{_SHORT}\s?\)|\b{_SHORT}\s?\(")
_LETTERS = re.compile(_SHORT)
_SMALL = frozenset(["of", "and", "the", "for", "in", "to", "on", "a", "an", "de"])
"""Words of a name that may have no letter in its acronym."""
_MOST_SMALL = 2
"""Most of them in a row."""
_LONGEST = 200
"""Most characters of a name in parentheses."""


class Acronym(NamedTuple):
    """An acronym with its name."""

    short: NormalForm
    name: tuple[NormalForm, ...]
    is_put: bool = False
    """Whether the acronym is put for the name; else the name is put for the acronym."""


Acronyms = Mapping[str, Acronym]
"""Acronyms as written, without a plural's `s`."""


class _Definition(NamedTuple):
    short: int
    """The place of the acronym."""
    name: range
    """The places of the name."""


def acronyms_of(tokens: Sequence[Token], text: str) -> dict[str, Acronym]:
    """Return the acronyms that a text defines, as in `Dearness Allowance (DA)` or `DA (…)`."""
    found = dict[str, Acronym]()
    for at, name in _definitions(tokens, text):
        forms = tuple(token.form for token in tokens[name.start : name.stop])
        found.setdefault(_written(tokens[at], text), Acronym(tokens[at].form, forms))
    return found


def as_held(texts: Iterable[Acronyms], stems: Container[str]) -> dict[str, Acronym]:
    """Return the acronyms of texts of which the passages hold the acronym, else the whole name.

    `stems` are the passages' words. The acronym is put if they hold it and it is no stop word, as
    `WHO` is. An acronym with two names is left as it is.
    """
    found, others = dict[str, Acronym](), set[str]()
    for written, one in chain.from_iterable(text.items() for text in texts):
        if _stems(one) != _stems(found.setdefault(written, one)):
            others.add(written)
    return {
        written: one._replace(is_put=is_held)
        for written, one in found.items()
        if written not in others
        and (
            (is_held := one.short.is_content and one.short.stem in stems)
            or all(form.stem in stems for form in one.name if form.is_content)
        )
    }


def as_put(tokens: Sequence[Token], text: str, known: Acronyms) -> list[Token]:
    """Return a sentence's words with one of acronym and name for both.

    Of those that stand beside each other, the other one is left out. `text` is the whole answer.
    """
    if not known:
        return list(tokens)
    left_out = set[int]()
    for at, name in _definitions(tokens, text):
        if (acronym := known.get(_written(tokens[at], text))) is not None:
            left_out |= set(name) if acronym.is_put else {at}
    by_name = {_stems(acronym): acronym.short for acronym in known.values() if acronym.is_put}
    lengths = sorted({len(name) for name in by_name}, reverse=True)
    stems = [token.form.stem for token in tokens]
    words, at = list[Token](), 0
    while at < len(tokens):
        token, length = tokens[at], 1
        acronym = known.get(_written(token, text))
        parts = (tuple(stems[at : at + each]) for each in lengths)
        if at in left_out:
            pass
        elif acronym is not None and not acronym.is_put:
            words += (token._replace(form=form) for form in acronym.name)
        elif held := next((part for part in parts if part in by_name), ()):
            length = len(held)
            words.append(token._replace(form=by_name[held], end=tokens[at + length - 1].end))
        else:
            words.append(token)
        at += length
    return words


def _stems(acronym: Acronym) -> tuple[str, ...]:
    return tuple(form.stem for form in acronym.name)


def _written(token: Token, text: str) -> str:
    return text[token.start : token.end].removesuffix("s")


def _definitions(tokens: Sequence[Token], text: str) -> Iterator[_Definition]:
    if not tokens or _MARK.search(text, tokens[0].start, tokens[-1].end + 1) is None:
        return
    for at, token in enumerate(tokens):
        word = text[token.start : token.end]
        if _LETTERS.fullmatch(word) is None:
            continue
        letters, behind = word.removesuffix("s").upper(), text[token.end : token.end + 2]
        is_inside = at > 0 and text[tokens[at - 1].end : token.start].strip() == "("
        if is_inside and behind.startswith(")"):
            name = _name_before(at, letters, tokens, text)
        elif behind.lstrip(" ").startswith("("):
            name = _name_behind(at, letters, tokens, text)
        else:
            continue
        if name is not None:
            yield _Definition(at, name)


def _name_before(end: int, letters: str, tokens: Sequence[Token], text: str) -> range | None:
    """Return the places of the name with these initials that ends before a place."""
    at, left, small = end - 1, len(letters), 0
    while left and at >= 0 and (at + 1 == end or _are_joined(tokens[at], tokens[at + 1], text)):
        if text[tokens[at].start].upper() == letters[left - 1]:
            left, small = left - 1, 0
        elif small == _MOST_SMALL or text[tokens[at].start : tokens[at].end] not in _SMALL:
            return None
        else:
            small += 1
        at -= 1
    return None if left else range(at + 1, end)


def _name_behind(short: int, letters: str, tokens: Sequence[Token], text: str) -> range | None:
    """Return the places of the name in parentheses with these initials behind an acronym."""
    close = text.find(")", tokens[short].end, tokens[short].end + _LONGEST)
    end = next((n for n in range(short + 1, len(tokens)) if tokens[n].start > close), len(tokens))
    name = _name_before(end, letters, tokens, text) if close > 0 and end > short + 1 else None
    return name if name is not None and name.start == short + 1 else None


def _are_joined(one: Token, other: Token, text: str) -> bool:
    return text[one.end : other.start].strip() in ("", "-")
