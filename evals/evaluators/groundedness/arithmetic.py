"""Find equations in a text, such as `$50,000 x 4% = $2,000`, and tell which of them are right."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from evals.evaluators.groundedness.quantities import UNITS, half_step
from evals.evaluators.groundedness.token import Token

_EQUALS = re.compile(r"[=≈]")
_MOST_BEFORE_RESULT = 4
"""Characters between the sign and the result, such as ` $`."""
_OPERATOR = re.compile(r"(?<![^\s\d%)])([+x×*·/÷])(?![^\s\d$€£¥₹(.])|(?<=\s)([-−–])(?=\s)")
_BREAK = re.compile(r"[\n=≈]|[.!?;:,]\s")
_PLAIN = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_APPROXIMATE = 0.01
"""Share by which a result behind `≈` may be off."""
_WRONG = 0.02
"""Share above which a result is wrong, and not only rounded otherwise."""
_MOST_TERMS = 12


class Equation(NamedTuple):
    """An equation between numbers of a text."""

    terms: tuple[Token, ...]
    result: Token
    value: float
    """What the terms make."""
    is_right: bool
    """Whether the written result is the value, rounded to its last digit."""
    is_wrong: bool
    """Whether it is another number, however rounded; false if units would have to be converted."""


class _Term(NamedTuple):
    value: float
    is_share: bool
    """Whether a percent sign is behind it."""


def equations(tokens: Sequence[Token], text: str) -> Iterator[Equation]:
    """Yield the equations of a text, in order; `tokens` are its words."""
    if _EQUALS.search(text) is None:
        return
    numbers = [token for token in tokens if token.form.is_number]
    units = {
        one.start: other.form.stem for one, other in pairwise(tokens) if other.form.stem in UNITS
    }
    for sign in _EQUALS.finditer(text):
        at = bisect_left(numbers, sign.end(), key=attrgetter("start"))
        if at == len(numbers) or not _is_beside(text[sign.end() : numbers[at].start]):
            continue
        found = _equation(numbers[max(at - _MOST_TERMS, 0) : at], numbers[at], text, sign)
        if found is not None:
            named = {units[t.start] for t in (*found.terms, found.result) if t.start in units}
            yield found._replace(is_wrong=found.is_wrong and len(named) < 2)


def _is_beside(between: str) -> bool:
    return len(between) <= _MOST_BEFORE_RESULT and not any(map(str.isalnum, between))


def _equation(
    before: Sequence[Token], result: Token, text: str, sign: re.Match[str]
) -> Equation | None:
    terms = _terms(before, text, sign.start())
    values = [_term(token, text) for token in (*terms, result)]
    if len(terms) < 2 or None in values:
        return None
    *known, written = (value for value in values if value is not None)
    signs = [_operator(text[a.end : b.start]) for a, b in pairwise(terms)]
    written_out = text[max(terms[0].start - 2, 0) : result.end + 1]
    between = text[terms[0].end : terms[-1].start]
    is_mixed = not {"(", ")"}.isdisjoint(between) and len({one in "+-" for one in signs}) > 1
    if is_mixed or written_out.count("(") != written_out.count(")"):
        return None
    value = _evaluated(known, signs)
    if value is None:
        return None
    scale = 0.01 if written.is_share else 1.0
    step = half_step(result.form.stem) * scale
    gap, size = abs(value - written.value), max(abs(value), 1e-9)
    near = _APPROXIMATE * size if sign.group() == "≈" else 0.0
    is_right = gap <= max(step, near) * (1 + 1e-9)
    return Equation(tuple(terms), result, value / scale, is_right, gap > max(step, _WRONG * size))


def _terms(before: Sequence[Token], text: str, end: int) -> list[Token]:
    """Return the numbers before a place that operators join, the last one beside it."""
    found = list[Token]()
    for token in reversed(before):
        until = found[0].start if found else end
        between = text[token.end : until]
        if _BREAK.search(between) or (found and not _operator(between)):
            break
        found.insert(0, token)
    return found


def _operator(between: str) -> str:
    """Return the only operator between two numbers; empty if there is none, or several."""
    found = ["".join(groups) for groups in _OPERATOR.findall(between)]
    return found[0].translate(_SPELLED) if len(found) == 1 else ""


def _term(token: Token, text: str) -> _Term | None:
    if not _PLAIN.fullmatch(token.form.stem):
        return None
    is_share = text[token.end : token.end + 2].lstrip().startswith("%")
    value = float(token.form.stem)
    return _Term(value / 100 if is_share else value, is_share)


def _evaluated(terms: Sequence[_Term], signs: Sequence[str]) -> float | None:
    """Return the value, products first; a percentage added to a number is one of it."""
    total, product, sign = 0.0, terms[0].value, 1.0
    for operator, term in zip(signs, terms[1:], strict=True):
        if operator == "*":
            product *= term.value
        elif operator == "/":
            if term.value == 0:
                return None
            product /= term.value
        else:
            total, sign = total + sign * product, 1.0 if operator == "+" else -1.0
            is_part = term.is_share and not terms[0].is_share
            product = term.value * total if is_part else term.value
    return total + sign * product


_SPELLED = (
    {ord(sign): "*" for sign in "x×*·"} | {ord("÷"): "/"} | dict.fromkeys(map(ord, "−–"), "-")
)
