"""Comparisons in words: candidate over baseline, or candidate − baseline, and no other way."""


def change_of_time(ratio: float) -> str:
    """Return a ratio of times in words, such as `38 % faster`."""
    percent = round(abs(1 - ratio) * 100)
    if not percent:
        return "equally fast"
    return f"{percent:,} % {'faster' if ratio < 1 else 'slower'}"


def ratio_text(ratio: float) -> str:
    """Return a ratio to two decimals; one that would read 1.00 and is not 1 gets up to four."""
    digits = next((n for n in (2, 3) if ratio == 1 or round(ratio, n) != 1), 4)
    return f"{ratio:.{digits}f}"


def difference_text(difference: float, *, share: bool) -> str:
    """Return a signed difference to three decimals; of two shares, in percentage points."""
    number = f"{abs(difference) * 100:.1f}" if share else f"{abs(difference):.3f}"
    sign = "" if float(number) == 0 else "+" if difference > 0 else "−"
    return f"{sign}{number} pp" if share else f"{sign}{number}"
