"""Signs beside numbers, and the words for them: `≥ 5`, `5′ 6″`, `-2℃`, `No. 5`, `1990s`."""

import re
from functools import lru_cache

from evals.evaluators.groundedness.lexicon import UNITS_SHORT

_INCHES = r"(?<=\d)\s?(?:\"|″|'')(?!\w)"
_AMOUNT = r"[$€£¥₹]?\.?\d"
SIGN = (
    rf"[≥≤](?=\s?{_AMOUNT})|(?<=[^\S\n])[<>]=?(?=\s?{_AMOUNT})"
    rf"|(?:(?<=[^\S\n])(?<!\d\s)|(?<=[(/]))[-−](?={_AMOUNT})|\bNo\.(?=\s?\d)"
    rf"|{_INCHES}|(?<=\d)['′](?=\s?\d\d?(?:\.\d+)?{_INCHES})|[℃℉]"
    r"|(?<=\d)\s?(?:[ckm]?m|ft|mi)[²³23]\b|(?<=\d)\s?¢|№(?=\s?\d)"
    r"|(?<!\w)['’][3-9]0s\b|(?<![\d.,])[12]\d\d0['’]?s\b"
)
"""A bound, a minus, `No.`, a raised unit, feet, inches, degrees, cents or a decade."""
_WORDS = {
    "≥": "at least", ">=": "at least", "≤": "at most", "<=": "at most", ">": "more than",
    "<": "less than", "-": "minus", "−": "minus", "No.": "number", '"': "inch", "″": "inch",
    "''": "inch", "'": "foot", "′": "foot", "℃": "celsius", "℉": "fahrenheit",
    "¢": "cent", "№": "number",
}  # fmt: skip
_QUOTATION_MARK = re.compile(rf"(?P<inches>{_INCHES})|\"")
_LONGEST_QUOTATION = 200


def words(sign: str, text: str, start: int) -> list[str]:
    """Return the words for a match of `SIGN` at `start`; none for the end of a quotation."""
    if sign == '"' and start in _ends_of_quotations(text):
        return []
    if sign in _WORDS:
        return _WORDS[sign].split()
    if unit := UNITS_SHORT.get(sign[:-1]):
        return ["square" if sign[-1] in "²2" else "cubic", unit]
    digits = re.sub(r"\D", "", sign)
    return [digits if len(digits) == 4 else f"19{digits}", "decade"]


@lru_cache(maxsize=2)
def _ends_of_quotations(text: str) -> frozenset[int]:
    """Return where quotations end: an open one makes the next mark its end, also behind digits."""
    ends, opened = set[int](), -_LONGEST_QUOTATION
    for mark in _QUOTATION_MARK.finditer(text):
        if mark.start() - opened < _LONGEST_QUOTATION:
            ends.add(mark.start())
            opened = -_LONGEST_QUOTATION
        elif mark["inches"] is None:
            opened = mark.start()
    return frozenset(ends)
