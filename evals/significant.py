"""Rounding what a verdict states, so that it is the same text on every machine."""


def significant(value: float | None, digits: int = 12) -> float | None:
    """Return the nearest number of so many significant digits; `None` stays.

    Sums and special functions differ in their last digits from one build of numpy or scipy to
    another, far beyond what 12 digits show.
    """
    return None if value is None else float(f"{value:.{digits - 1}e}")
