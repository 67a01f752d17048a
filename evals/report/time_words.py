"""A ratio of times, candidate over baseline, in words; no other direction is shown."""


def change_of_time(ratio: float) -> str:
    """Return a candidate/baseline ratio of times in words, such as `38 % faster`."""
    percent = round(abs(1 - ratio) * 100)
    if not percent:
        return "equally fast"
    return f"{percent:,} % {'faster' if ratio < 1 else 'slower'}"
