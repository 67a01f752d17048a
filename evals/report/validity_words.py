"""Describe the validity of answers in a few words."""

from collector.contract import AnswerValidity

_FAULTS = {
    "not_json": "no JSON",
    "invalid": "against schema",
    "no_calls": "no call",
}


def load_words(band: tuple[int, int]) -> str:
    """Return a range of requests in flight, such as `8–15`."""
    first, last = band
    return str(first) if first == last else f"{first}–{last}"


def valid_words(side: AnswerValidity) -> str:
    """Return how many answers are valid, and the others by their fault."""
    if not side.judged:
        return "–"
    valid = side.judged - side.invalid
    said = f"{valid / side.judged:.1%} of {side.judged:,}"
    faults = ", ".join(f"{n:,} {_FAULTS.get(label, label)}" for label, n in side.faults.items())
    return f"{said} ({faults})" if faults else said


def place_words(side: AnswerValidity) -> str | None:
    """Return where invalid answers break: median and middle half; None if that is unknown."""
    if side.position_p50 is None:
        return None
    place = f"{side.position_p50:.0f} ({side.position_p25:.0f}–{side.position_p75:.0f})"
    return place if side.share_p50 is None else f"{place}, {side.share_p50:.0%}"
