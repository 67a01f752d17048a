"""Quantities that say the same in another unit: `375°F` and `190°C`, `1.5 hours`, `90 minutes`."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import itemgetter

from evals.evaluators.groundedness.quantities import (
    COUNTED,
    PARTS,
    SHARE,
    TEMPERATURE,
    Quantity,
    Unit,
    WrittenNumber,
    quantities,
)
from evals.evaluators.groundedness.shares import share_at
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import NormalForm, Token

_HEDGE_LIST = "about approximately approx around roughly nearly almost or equal equivalent to i.e"
_HEDGES = frozenset(map(stem, _HEDGE_LIST.split()))
_SAME = re.compile(r"[(/=≈]|\bor\b|\bequal|\bequivalent", re.IGNORECASE)
"""Between a quantity and the same one in another unit."""
_OF = NormalForm("of", is_content=False)
"""Behind a share that is put for `one in four`."""
_PERCENT = NormalForm("percent", is_content=False)
_FRACTION = Unit("fraction", 0.01, "fractions")
"""Of `half` or `1/2` wherever it stands, in percent; it may not be a share."""
_NEAR, _ROUNDED, _ROUNDED_LESS = 0.015, 0.06, 0.025
"""Shares by which a converted number may be off: a precise one, a round one, round degrees
and percentages."""
_LEAST_ROUND = 10
_SAME_SHARE = 0.001
_DIFFERENCE = "difference of temperature"
_LESS_ROUNDED = frozenset([TEMPERATURE, _DIFFERENCE, SHARE])
_APART, _LEAST_APART = 0.1, 3.0
"""Share by which a wrong conversion is off at least, and number of units if it is rounded."""
_MOST_NEAR = 32
"""Amounts on either side of a value that are compared with it."""
_OTHER_VALUE = 0.1
"""Share within which another value in the same unit is taken to be what a quantity means."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with a unit, as a text has it."""

    value: float
    units: tuple[Unit, ...]
    number: tuple[NormalForm, ...]
    name: tuple[NormalForm, ...]
    """Its unit's words."""


def amounts_of(tokens: Sequence[Token], text: str) -> Iterator[Amount]:
    """Yield the numbers with a unit of a text, then its fractions; `tokens` are its words."""
    for quantity in quantities(tokens, text):
        for at, number in enumerate(quantity.numbers):
            name = quantity.names[min(at, len(quantity.names) - 1)] if quantity.names else range(0)
            forms = (tuple(tokens[n].form for n in words) for words in (number.tokens, name))
            yield Amount(number.value, quantity.units, *forms)
    for at in range(len(tokens)):
        if (share := share_at(at, tokens, text)) is not None:
            yield Amount(share.percent, (_FRACTION,), (), ())


class KnownAmounts:
    """Amounts of the passages, or of another answer, in which equal ones are looked up.

    They are read when the first one is asked for: most sentences have no quantity.
    """

    def __init__(self, amounts: Iterable[Amount]) -> None:
        self._amounts = amounts

    @cached_property
    def _exact(self) -> dict[tuple[tuple[Unit, ...], float], Amount]:
        found: dict[tuple[tuple[Unit, ...], float], Amount] = {}
        for amount in self._amounts:
            found.setdefault((amount.units, amount.value), amount)
        return found

    @cached_property
    def _sorted(self) -> dict[str, list[tuple[float, int, Amount]]]:
        """The amounts of each kind by their value in its base unit, each with its order."""
        found = defaultdict[str, list[tuple[float, int, Amount]]](list)
        for at, amount in enumerate(self._exact.values()):
            for unit in amount.units:
                found[unit.kind].append((unit.of(amount.value), at, amount))
        for several in found.values():
            several.sort(key=itemgetter(0, 1))
        return found

    def equal(self, number: WrittenNumber, units: tuple[Unit, ...]) -> Amount | None:
        """Return the first equal amount; `None` if another like number with this unit is known.

        `375 degrees` is not taken for `375°C`.
        """
        if (same := self._exact.get((units, number.value))) is not None:
            return same
        near = {at: amount for unit in units for at, amount in self._near(number, unit)}
        reach = _OTHER_VALUE * abs(number.value)
        for amount in near.values():
            if amount.units == units and abs(amount.value - number.value) <= reach:
                return None
        others = (
            near[at]
            for at in sorted(near)
            if near[at].value != number.value or not set(units) & set(near[at].units)
        )
        return next((a for a in others if _says(number, units, a.value, a.units)), None)

    def lacks_share(self, percent: float) -> bool:
        """Return whether shares are known, but no share or fraction of this size."""
        fractions, least = self._sorted.get(_FRACTION.kind, []), _FRACTION.of(percent) - _SAME_SHARE
        at = bisect_left(fractions, least, key=itemgetter(0))
        is_known = at < len(fractions) and fractions[at][0] < least + 2 * _SAME_SHARE
        return SHARE in self._sorted and not is_known

    def _near(self, number: WrittenNumber, unit: Unit) -> Iterator[tuple[int, Amount]]:
        """Yield the nearest amounts of the unit's kind, each with its order."""
        found = self._sorted.get(unit.kind, [])
        middle = bisect_left(found, unit.of(number.value), key=itemgetter(0))
        for _, at, amount in found[max(middle - _MOST_NEAR, 0) : middle + _MOST_NEAR]:
            yield at, amount


def as_known(tokens: Sequence[Token], text: str, known: KnownAmounts) -> list[Token]:
    """Return a sentence's words with each quantity as the first known amount that it equals.

    What only repeats the quantity before it in another unit is left out, as in `375°F (190°C)`.
    `text` is the whole answer.
    """
    tokens = list(tokens)
    found = quantities(tokens, text)
    instead = {number: part for one in found for number, part in _instead(tokens, one, known)}
    left_out = {
        at
        for one, other in pairwise(found)
        if _repeats(one, other, tokens, text)
        for at in range(one.end, other.end)
    }
    if not instead and not left_out:
        return tokens
    words = list[Token]()
    for at, token in enumerate(tokens):
        if at not in left_out:
            words += instead.get(at, [token])
    return words


def wrong_repeats(tokens: Sequence[Token], text: str) -> list[str]:
    """Return what a sentence gives as one quantity in two units but is not: `250°F (75°C)`."""
    return [
        text[tokens[one.start].start : tokens[other.end - 1].end]
        for one, other in pairwise(quantities(tokens, text))
        if _is_beside(one, other, tokens, text)
        and text.startswith(")", tokens[other.end - 1].end)
        and _are_apart(one, other)
    ]


def _instead(
    tokens: Sequence[Token], quantity: Quantity, known: KnownAmounts
) -> Iterator[tuple[int, list[Token]]]:
    """Yield places of a quantity's words, and the words of the known equal one for each."""
    chosen = list[Amount]()
    for number in quantity.numbers:
        amount = known.equal(number, quantity.units)
        if amount is None:
            is_part = quantity.units in ((PARTS,), (COUNTED,))
            if is_part and known.lacks_share(number.value):
                yield from _exchanged(tokens, number.tokens, _in_percent(number.value))
            return
        chosen.append(amount)
    if len({amount.units for amount in chosen}) > 1:
        return
    if len(chosen) > 1 and not all(amount.name for amount in chosen):
        return
    for number, amount in zip(quantity.numbers, chosen, strict=True):
        forms = amount.number if quantity.names else amount.number + amount.name
        if COUNTED in quantity.units and COUNTED not in amount.units:
            forms += (_OF,)
        yield from _exchanged(tokens, number.tokens, forms)
    for name in quantity.names:
        yield from _exchanged(tokens, name, chosen[0].name)


def _in_percent(share: float) -> tuple[NormalForm, ...]:
    """Return a share in words as a percentage, which counts as a number that nothing explains."""
    return NormalForm(f"{share:.4g}", is_number=True), _PERCENT, _OF


def _exchanged(
    tokens: Sequence[Token], place: range, forms: Sequence[NormalForm]
) -> Iterator[tuple[int, list[Token]]]:
    start, end = tokens[place.start].start, tokens[place.stop - 1].end
    yield place.start, [Token(form, start, end, is_name=False) for form in forms]
    for at in place[1:]:
        yield at, []


def _repeats(one: Quantity, other: Quantity, tokens: Sequence[Token], text: str) -> bool:
    """Return whether the second quantity is the first one in another unit, written beside it."""
    if not _is_beside(one, other, tokens, text):
        return False
    first, second = _or_differences(one.units), _or_differences(other.units)
    return all(
        _says(a, first, b.value, second) or _says(b, second, a.value, first)
        for a, b in zip(one.numbers, other.numbers, strict=True)
    )


def _or_differences(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Return the units, and those of differences of temperature, as in `15°C (27°F) warmer`."""
    degrees = (unit for unit in units if unit.kind == TEMPERATURE)
    return (*units, *(unit._replace(kind=_DIFFERENCE, zero=0.0) for unit in degrees))


def _is_beside(one: Quantity, other: Quantity, tokens: Sequence[Token], text: str) -> bool:
    """Return whether the second quantity is written as the first one in another unit."""
    if len(one.numbers) != len(other.numbers) or one.units == other.units:
        return False
    between = tokens[one.end : other.start]
    gap = text[tokens[one.end - 1].end : tokens[other.start].start]
    return all(token.form.stem in _HEDGES for token in between) and bool(_SAME.search(gap))


def _are_apart(one: Quantity, other: Quantity) -> bool:
    """Return whether a number of the second differs from the first's, however rounded."""
    first, second = _or_differences(one.units), _or_differences(other.units)
    pairs = [(u, v) for u in first for v in second if u.kind == v.kind]
    return bool(pairs) and any(
        all(
            abs(u.of(a.value) - v.of(b.value))
            > max(_APART * abs(b.value * v.size), (u.system != v.system) * _LEAST_APART * v.size)
            for u, v in pairs
        )
        for a, b in zip(one.numbers, other.numbers, strict=True)
    )


def _says(
    number: WrittenNumber, units: Sequence[Unit], value: float, others: Sequence[Unit]
) -> bool:
    """Return whether a written number is a value in other units, perhaps rounded."""
    return any(
        _is_near(number, u, v.of(value), v.system)
        for u in units
        for v in others
        if u.kind == v.kind
    )


def _is_near(number: WrittenNumber, unit: Unit, base: float, system: str) -> bool:
    """Return whether a number in a unit is the value `base`, rounded if the systems differ."""
    gap, size = abs(number.value - (base - unit.zero) / unit.size), abs(number.value)
    if gap <= 1e-6 * max(size, 1.0):
        return True
    is_whole, is_less = number.step >= 0.5, unit.kind in _LESS_ROUNDED
    if unit.system == system:
        return not is_whole and gap <= number.step
    is_round = (2 * number.value) % 5 == 0 or (is_whole and size < _LEAST_ROUND)
    share = (_ROUNDED_LESS if is_less or not is_whole else _ROUNDED) if is_round else _NEAR
    least = number.step if not is_whole or is_less or size >= _LEAST_ROUND else 0.0
    return gap <= max(least, share * size)
