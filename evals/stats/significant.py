"""Round a verdict's numbers, so that its text is the same on every machine."""


def significant(value: float | None, digits: int = 8) -> float | None:
    """Round to this many significant digits; `None` stays.

    Sums, special functions and their roots differ between processors and builds of numpy and
    scipy: by 1e-13 of the value as a rule, by 3e-11 at worst. Eight digits are below that.
    """
    return None if value is None else float(f"{value:.{digits - 1}e}")
