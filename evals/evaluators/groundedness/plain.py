"""Blank out citation markers, URLs and LaTeX; make wide letters and apostrophes plain.

Every character keeps its place, so offsets are valid in the original text.
"""

import re

_SOURCE = r"(?:sources?|refs?|references?|docs?|documents?|citations?|cite|notes?|footnotes?)"
_SPECIAL = re.compile(
    r"[\[【<\\$（‘’º˚\u00a0\u00b2\u00b3\u00b9\u2000-\u200a\u202f\u2070-\u2079\u2080-\u2089\u3000\uff01-\uff5e]"
    rf"|\(\s*(?:\d|[a-z]+ \d|{_SOURCE}\s*\))|https?:|[*_]['’]",
    re.IGNORECASE,
)
"""Matches every text that has something to blank out or replace."""
_WIDE = (
    {0xFF01 + n: 0x21 + n for n in range(94)}
    | dict.fromkeys([0xA0, 0x202F, 0x3000, *range(0x2000, 0x200B)], 0x20)
    | dict.fromkeys(map(ord, "‘’"), ord("'"))
    | dict.fromkeys(map(ord, "º˚"), ord("°"))
    | {0x2080 + n: 0x30 + n for n in range(10)}
)
_NUMBERS = r"\^?\d{1,3}(?:\s*[,;–-]\s*\^?\d{1,3})*"
_NO_LENGTH = r"(?<![\d\s]m)(?<![\d\s][ckm]m)(?<![\d\s]ft)(?<![\d\s]mi)"
"""No unit of length, whose raised 2 or 3 makes it one of area or volume."""
_MARKERS = re.compile(
    rf"\[\s*(?:{_SOURCE}\s*[:#]?\s*)?{_NUMBERS}\s*\]|\[citation needed\]"
    rf"|\(\s*{_SOURCE}(?:\s*[:#]?\s*{_NUMBERS})?\s*\)|\[\s*{_SOURCE}\s*\]"
    r"|(?<=[\w.!?\"'”’)])\s?\(\d{1,2}\)(?=[.!?,;]*(?:\s*$|\s+[A-Z]|\s*\n))"
    rf"|(?<=\w[.!?])\s?\(\d{{1,2}}\)|(?<=[^\s\d⁻]){_NO_LENGTH}[¹²³⁰-⁹]+"
    r"|【[^】\n]{1,40}】|<sup>[^<\n]{1,20}</sup>|<cite[^>\n]{0,80}>|</cite>"
    r"|</?(?:br|p|b|i|em|strong|u|ul|ol|li|div|span|h[1-6])\s*/?>"
    r"|<ref[^>\n]{0,80}/?>|</ref>",
    re.IGNORECASE | re.MULTILINE,
)
_LINK = re.compile(r"(?<=\])\(https?://[^)\s]+\)|https?://[^\s)\]]+")
_MATH = re.compile(r"\$(?=[^\s$])([^$\n]{0,80}?[^\s$])\$(?!\d)")
_EMPHASIS = re.compile(r"(?<=[^\W_])[*_]{1,3}(?=['’][^\W_])")
"""The end or beginning of emphasis within a word, as in `*it*'s` and `it*'s*`."""
_COMMAND = re.compile(r"\\[a-zA-Z]+|\\[()\[\]]")


def spaced(pattern: str) -> str:
    """Return a pattern in which each space stands for any white space."""
    return pattern.replace(" ", r"\s+")


def plain(text: str) -> str:
    """Return the text, of equal length, with blanks in place of markup."""
    if _SPECIAL.search(text) is None:
        return text
    text = text.translate(_WIDE)
    for pattern in (_MARKERS, _LINK, _COMMAND):
        text = pattern.sub(_blank, text)
    text = _EMPHASIS.sub(lambda match: "\u200b" * len(match.group()), text)
    return _MATH.sub(lambda match: f" {match[1]} ", text)


def _blank(match: re.Match[str]) -> str:
    sign = "×" if match.group() in ("\\times", "\\cdot") else ""
    return sign.ljust(len(match.group()))
