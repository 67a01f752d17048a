"""Find quantities: `375°F`, `5 to 10 miles`, `1 hour and 30 minutes`, `60 km/h`, `one in four`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evals.evaluators.groundedness.shares import is_ordinal, share_at
from evals.evaluators.groundedness.stemming import stem
from evals.evaluators.groundedness.token import Token


class Unit(NamedTuple):
    """A unit of measurement or money."""

    kind: str
    size: float
    """In the kind's base unit."""
    system: str
    """Conversions within one system are exact, those between two are rounded."""
    zero: float = 0.0
    """Its zero in the kind's base unit."""

    def of(self, value: float) -> float:
        """Return a value of this unit in the kind's base unit."""
        return value * self.size + self.zero


_LENGTH, _AREA, _VOLUME, _SPEED, TEMPERATURE = "length", "area", "volume", "speed", "temperature"
SHARE = "share"
_METRIC, _CUSTOMARY, _COMMON = "metric", "US customary", "common"
_SIZES = {
    (_LENGTH, _METRIC): {"meter": 1.0, "kilometer": 1e3, "centimeter": 1e-2, "millimeter": 1e-3},
    (_LENGTH, _CUSTOMARY): {"inch": 0.0254, "foot": 0.3048, "yard": 0.9144, "mile": 1609.344},
    (_AREA, _METRIC): {"hectare": 1e4},
    (_AREA, _CUSTOMARY): {"acre": 4046.8564224},
    (_VOLUME, _METRIC): {"liter": 1e-3, "milliliter": 1e-6},
    (_VOLUME, _CUSTOMARY): {
        "gallon": 3.785411784e-3, "quart": 9.46352946e-4, "pint": 4.73176473e-4,
        "cup": 2.365882365e-4, "ounce": 2.95735296e-5, "tablespoon": 1.47867648e-5,
        "teaspoon": 4.92892159e-6,
    },
    ("mass", _METRIC): {"gram": 1.0, "kilogram": 1e3, "milligram": 1e-3},
    ("mass", _CUSTOMARY): {"ounce": 28.349523125, "pound": 453.59237},
    ("time", _COMMON): {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0,
                        "week": 604800.0},
    ("months", _COMMON): {"month": 1.0, "year": 12.0, "decade": 120.0, "century": 1200.0},
    ("money", _COMMON): {"dollar": 1.0, "cent": 0.01},
}  # fmt: skip
"""Sizes of units by kind and system, from NIST Handbook 44, Appendix C."""
_FAHRENHEIT = Unit(TEMPERATURE, 5 / 9, _CUSTOMARY, -32 * 5 / 9)
_CELSIUS = Unit(TEMPERATURE, 1.0, _METRIC)
_PERCENT = Unit(SHARE, 0.01, "percent")
PARTS, COUNTED = Unit(SHARE, 0.01, "parts"), Unit(SHARE, 0.01, "counted")
"""Of `a quarter of` and `one in four`, whose values are in percent, too."""
_POWERS = {"square": (_AREA, 2), "cubic": (_VOLUME, 3)}
RAISED = {stem(word): word for word in _POWERS}
"""Words before a unit of length that make it one of area or volume, by stem."""
_SPEEDS = {"mph": "mile", "kph": "kilometer", "kmh": "kilometer"}
_PER = frozenset(["per", "an", "a"])
_DASHES = frozenset("-–—−")
_BETWEEN = frozenset(["to", "and", "or"])
_HALF = stem("half")
_BEFORE_ONE_LIST = "for in within about after over than least take takes took last lasts lasted"
_BEFORE_ONE = frozenset(map(stem, _BEFORE_ONE_LIST.split()))
"""Words before `a` that is 1, as in `takes an hour`."""
_PLAIN = re.compile(r"\d{1,15}(?:\.\d{1,6})?")


class WrittenNumber(NamedTuple):
    """A number and its place."""

    value: float
    step: float
    """Half of the last written digit's unit."""
    tokens: range
    """The places of its words."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, or a range, with its unit."""

    numbers: tuple[WrittenNumber, ...]
    """Two for a range."""
    units: tuple[Unit, ...]
    """What its unit may mean; of `6 feet 2 inches`, which is one number, the first unit."""
    names: tuple[range, ...]
    """The places of its unit; none if the number's words contain it."""

    @property
    def start(self) -> int:
        """The place of its first word."""
        return self.numbers[0].tokens.start

    @property
    def end(self) -> int:
        """The place behind its last word."""
        return max(part.stop for part in (self.numbers[-1].tokens, *self.names))


def quantities(tokens: Sequence[Token], text: str) -> list[Quantity]:
    """Return the quantities among the words of a text, in order."""
    found = list[Quantity]()
    for at, token in enumerate(tokens):
        one = _share_at(at, tokens, text)
        if one is None and (units := _MEASURES.get(token.form.stem)):
            one = _quantity_at(at, units, tokens, text)
        if one is None or (found and one.start < found[-1].end):
            continue
        joined = _joined(found[-1], one, tokens, text) if found else None
        if joined is None:
            found.append(one)
        else:
            found[-1] = joined
    return found


def _share_at(at: int, tokens: Sequence[Token], text: str) -> Quantity | None:
    """Return the share that ends at a word, or a part of a unit, such as `a quarter of an hour`."""
    if (share := share_at(at, tokens, text)) is None:
        return None
    number = WrittenNumber(share.percent, 0.0, range(share.start, share.end))
    behind = [token.form.stem for token in tokens[share.end : share.end + 3]]
    if share.is_counted:  # `1 in 4 minutes` is no share
        return None if behind and behind[0] in UNITS else Quantity((number,), (COUNTED,), ())
    if behind[:1] not in (["of"], ["the"]):
        return None
    if len(behind) < 3 or behind[1] not in ("a", "an") or behind[2] not in UNITS:
        return Quantity((number,), (PARTS,), ())
    part = WrittenNumber(share.percent / 100, 0.0, range(share.start, share.end + 2))
    return Quantity((part,), UNITS[behind[2]], (range(share.end + 2, share.end + 3),))


def half_step(digits: str) -> float:
    """Return half of the last written digit's unit: by how much rounding may change a number."""
    return 0.5 * 10.0 ** -len(digits.partition(".")[2])


def _quantity_at(
    at: int, units: tuple[Unit, ...], tokens: Sequence[Token], text: str
) -> Quantity | None:
    """Return the quantity whose unit ends at a word; `None` if no number is before it."""
    first, end = at, at + 1
    if at and (word := RAISED.get(tokens[at - 1].form.stem)):
        units, first = _raised(units, *_POWERS[word]), at - 1
    elif units[0].kind == _LENGTH and (time := _time_behind(at, tokens, text)):
        end, second = time
        units = (units[0]._replace(kind=_SPEED, size=units[0].size / second),)
    number = _number_before(first, tokens, text)
    if number is None or not units:
        return None
    lower = _lower_end(number.tokens.start, tokens, text)
    numbers = (number,) if lower is None else (lower, number)
    return Quantity(numbers, units, (range(first, end),))


def _raised(units: Iterable[Unit], kind: str, power: int) -> tuple[Unit, ...]:
    lengths = (unit for unit in units if unit.kind == _LENGTH)
    return tuple(unit._replace(kind=kind, size=unit.size**power) for unit in lengths)


def _time_behind(at: int, tokens: Sequence[Token], text: str) -> tuple[int, float] | None:
    """Return the end and the seconds of `per hour`, `/h` and the like behind a word."""
    behind = [token.form.stem for token in tokens[at + 1 : at + 3]]
    if len(behind) == 2 and behind[0] in _PER:
        name, end = behind[1], at + 3
    elif behind and text[tokens[at].end : tokens[at + 1].start] == "/":
        name, end = {"h": "hour", "s": "second"}.get(behind[0], behind[0]), at + 2
    else:
        return None
    times = [unit.size for unit in UNITS.get(name, ()) if unit.kind == "time"]
    return (end, times[0]) if times else None


def _number_before(end: int, tokens: Sequence[Token], text: str) -> WrittenNumber | None:
    """Return the number whose words end before a place, such as `2`, `1 1/2` or `half a`."""
    at = end - 1
    if at < 0:
        return None
    if not tokens[at].form.is_number:
        return _spelled_before(end, tokens, text)
    digits = tokens[at].form.stem
    if not _PLAIN.fullmatch(digits) or is_ordinal(tokens[at], text):
        return None
    found = WrittenNumber(float(digits), half_step(digits), range(at, end))
    if (upper := _numerator(at, tokens, text)) is not None:
        whole = _whole(at - 1, tokens, text)
        value = upper.value / found.value + (whole.value if whole else 0.0)
        found = WrittenNumber(value, 0.0, range(at - 1 if whole is None else at - 2, end))
    start = found.tokens.start
    if start and tokens[start - 1].form.stem == "minus":
        return found._replace(value=-found.value, tokens=range(start - 1, end))
    return found


def _spelled_before(end: int, tokens: Sequence[Token], text: str) -> WrittenNumber | None:
    """Return the number `one`, `half`, `half a` or `2 and a half` that ends before a place."""
    stems = [token.form.stem for token in tokens[max(end - 3, 0) : end]]
    if stems[-1] == "one":
        return WrittenNumber(1.0, 0.5, range(end - 1, end))
    if stems[-1] in ("a", "an") and stems[-2:-1] == [_HALF]:
        return WrittenNumber(0.5, 0.0, range(end - 2, end))
    if stems[-1] in ("a", "an") and stems[-2:-1] and stems[-2] in _BEFORE_ONE:
        return WrittenNumber(1.0, 0.5, range(end - 1, end))
    if stems[-1] != _HALF:
        return None
    before = tokens[end - 4].form if end > 3 and stems[:2] == ["and", "a"] else None
    is_number = before is not None and (before.is_number or before.stem == "one")
    whole = _number_before(end - 3, tokens, text) if is_number else None
    if whole is None:
        return WrittenNumber(0.5, 0.0, range(end - 1, end))
    return WrittenNumber(whole.value + 0.5, 0.0, range(whole.tokens.start, end))


def _numerator(at: int, tokens: Sequence[Token], text: str) -> WrittenNumber | None:
    """Return the number above the fraction bar, if the word at a place is the one below it."""
    if not at or not tokens[at - 1].form.is_number or tokens[at].form.stem == "0":
        return None
    one, other = tokens[at - 1], tokens[at]
    if one.start != other.start and text[one.end : other.start] not in ("/", "⁄"):
        return None
    return _digits(at - 1, tokens)


def _whole(at: int, tokens: Sequence[Token], text: str) -> WrittenNumber | None:
    """Return the whole number before a fraction that begins at a place, as in `1 1/2`."""
    if not at or text[tokens[at - 1].end : tokens[at].start].strip(" -"):
        return None
    return _digits(at - 1, tokens)


def _digits(at: int, tokens: Sequence[Token]) -> WrittenNumber | None:
    form = tokens[at].form
    is_whole = form.is_number and form.stem.isdecimal() and _PLAIN.fullmatch(form.stem)
    return WrittenNumber(float(form.stem), 0.5, range(at, at + 1)) if is_whole else None


def _lower_end(at: int, tokens: Sequence[Token], text: str) -> WrittenNumber | None:
    """Return the first number of a range whose second begins at a place, as in `5 to 10`."""
    if not at:
        return None
    if tokens[at - 1].form.is_number:
        gap = text[tokens[at - 1].end : tokens[at].start].strip()
        return _number_before(at, tokens, text) if gap in _DASHES else None
    if tokens[at - 1].form.stem not in _BETWEEN:
        return None
    lower = _number_before(at - 1, tokens, text)
    if lower is None or tokens[at - 1].form.stem != "and":
        return lower
    start = lower.tokens.start
    return lower if start and tokens[start - 1].form.stem == "between" else None


def _joined(one: Quantity, other: Quantity, tokens: Sequence[Token], text: str) -> Quantity | None:
    """Join `6 feet` and `2 inches`, or `5 °C` and `10 °C` of a range; `None` if they are apart."""
    if len(one.numbers) + len(other.numbers) > 2 or not one.names or not other.names:
        return None
    first, second = one.units[0], other.units[0]
    between = [token.form.stem for token in tokens[one.end : other.start]]
    gap = text[tokens[one.end - 1].end : tokens[other.start].start].strip()
    if one.units == other.units and (between == ["to"] or (not between and gap in _DASHES)):
        return Quantity((*one.numbers, *other.numbers), one.units, (*one.names, *other.names))
    same_kind = [u for u in one.units for v in other.units if u.kind == v.kind]
    is_part = bool(same_kind) and second.size < first.size and first.kind != TEMPERATURE
    if (
        not is_part
        or between not in ([], ["and"])
        or gap.strip("-") not in ("", ",", "and", ", and")
    ):
        return None
    whole, part = one.numbers[0], other.numbers[0]
    unit = same_kind[0]
    smaller = next(v for v in other.units if v.kind == unit.kind)
    value = whole.value + part.value * smaller.size / unit.size
    return Quantity((WrittenNumber(value, 0.0, range(one.start, other.end)),), (unit,), ())


def _units() -> dict[str, tuple[Unit, ...]]:
    """Return the meanings of each unit, by the stem of its name."""
    found = dict[str, tuple[Unit, ...]]()
    for (kind, system), sizes in _SIZES.items():
        for name, size in sizes.items():
            found[name] = (*found.get(name, ()), Unit(kind, size, system))
    found |= {"fahrenheit": (_FAHRENHEIT,), "celsius": (_CELSIUS,)}
    found["degree"] = (_FAHRENHEIT, _CELSIUS)
    for name, instead in _SPEEDS.items():
        length = found[instead][0]
        found[name] = (length._replace(kind=_SPEED, size=length.size / 3600),)
    return {stem(name): units for name, units in found.items()}


UNITS = _units()
"""What each unit may mean, by the stem of its name."""
_MEASURES = UNITS | {stem("percent"): (_PERCENT,)}
