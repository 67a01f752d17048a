"""Edits that give a quantity in another unit, rightly or wrongly."""

import random
import re

from training.groundedness.edits.places import Edit, Source, put

_NUMBER = r"(?<![\d./–-])(?<!\d )(?<!\bto )(?<!\bor )(?<!\band )(?<!\bfeet )(\d{%s}) ?"
_OTHER_UNITS = {
    re.compile(_NUMBER % digits + unit + r"(?! ?\()"): (rate, zero, other)
    for digits, unit, rate, zero, other in (
        ("3", r"(?:°|degrees )F(?:ahrenheit)?\b", 5 / 9, 32.0, "°C"),
        ("1,2", r"inch(?:es)?\b(?! \d)", 25.4, 0.0, " mm"),
        ("2,4", r"feet\b(?! \d)", 0.3048, 0.0, " m"),
        ("2,4", r"miles\b(?! per| an)", 1.609344, 0.0, " km"),
        ("1,3", r"pounds\b", 453.59237, 0.0, " g"),
        ("1", r"hours\b", 60.0, 0.0, " minutes"),
        ("1", r"weeks\b", 7.0, 0.0, " days"),
        ("1", r"years\b(?! old)", 12.0, 0.0, " months"),
    )
}
"""Rate, zero and name of another unit, by the pattern of a quantity without one behind it."""
_WRONG = (0.5, 0.7, 1.2, 1.4)
"""Factors of a wrong result."""


def converted(source: Source, rng: random.Random) -> Edit | None:
    """Give a quantity in another unit, behind it or in its place."""
    found = _quantity(source.answer, rng)
    if found is None:
        return None
    match, number, unit = found
    other = _written(number, unit)
    written = rng.choice((f"{match[0]} ({other})", f"{match[0]} (about {other})", other))
    return put(source.answer, match.start(), match.end(), written)


def wrongly_converted(source: Source, rng: random.Random) -> Edit | None:
    """Give a quantity in another unit behind it, with a number that is wrong."""
    found = _quantity(source.answer, rng)
    if found is None:
        return None
    match, number, unit = found
    other = _written(number * rng.choice(_WRONG), unit)
    return put(source.answer, match.end(), match.end(), f" ({other})")


def _written(number: float, unit: str) -> str:
    """Return a quantity with three significant digits."""
    return f"{float(f'{number:.3g}'):g}{unit}"


def _quantity(text: str, rng: random.Random) -> tuple[re.Match[str], float, str] | None:
    """Return one of a text's quantities, and the number and the name of another unit."""
    found = [match for pattern in _OTHER_UNITS for match in pattern.finditer(text)]
    if not found:
        return None
    match = rng.choice(found)
    rate, zero, unit = _OTHER_UNITS[match.re]
    return match, (float(match[1]) - zero) * rate, unit
