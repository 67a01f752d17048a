"""Rounding what a verdict states, so that it is the same text on every machine."""


def significant(value: float | None, digits: int = 8) -> float | None:
    """Return the nearest number of so many significant digits; `None` stays.

    Sums, special functions and the roots found with them differ from one processor, and from one
    build of numpy or scipy, to another: by 1e-13 of the value as a rule, and 3e-11 at worst.
    Further digits would be theirs.
    """
    return None if value is None else float(f"{value:.{digits - 1}e}")
