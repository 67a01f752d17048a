"""Blank out citation markers, URLs, markup and LaTeX; make wide letters and apostrophes plain.

Every character keeps its place, so offsets are valid in the original text.
"""

import html
import re
import unicodedata

_SOURCE = (
    r"(?:sources?|refs?|references?|docs?|documents?|citations?|cite|notes?|footnotes?|contexts?"
    r"|chunks?|snippets?|results?)"
)
_SPECIAL = re.compile(
    r"[\[【<\\$（‘’º˚\u00a0\u00b2\u00b3\u00b9\u2000-\u200a\u202f\u2070-\u2079\u2080-\u2089\u3000\uff01-\uff5e]"
    rf"|\(\s*(?:\d|[a-z]+[.:#]? ?\d|{_SOURCE}\s*\)|ibid|(?:see|cf|per|from)\b)|https?:|[*_]['’]"
    r"|[.!?]\^|\s\{\d|[.!?]\{\d|&#?\w{2,8};|\A\s*(?:```|[{\[])",
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
    rf"(?:\((?:see|cf\.?|per|from|{_SOURCE}:?)\s)?"
    rf"\[\s*(?:(?:{_SOURCE}|[a-z])\.?\s*[:#-]?\s*)?{_NUMBERS}(?:[†:][^\]\n]{{0,20}})?\s*\]"
    rf"(?<=\])\)?|\[citation needed\]|\((?:ibid|op\. cit|loc\. cit)\.?\)"
    rf"|\(\s*{_SOURCE}\.?(?:\s*[:#]?\s*{_NUMBERS})?\s*\)|\[\s*{_SOURCE}\s*\]"
    rf"|\\(?:cite|footnote|ref)[a-z]{{0,8}}\{{[^}}\n]{{0,60}}\}}"
    rf"|(?<=[.!?])\s?(?:\^\d{{1,2}}(?!\d)|\{{\d{{1,2}}\}})|\s\{{\d{{1,2}}\}}(?=[.!?])"
    r"|(?<=[\w.!?\"'”’)])\s?\(\d{1,2}\)(?=[.!?,;]*(?:\s*$|\s+[A-Z]|\s*\n))"
    rf"|(?<=\w[.!?])\s?\(\d{{1,2}}\)|(?<=[^\s\d⁻]){_NO_LENGTH}[¹²³⁰-⁹]+"
    r"|【[^】\n]{1,40}】|<sup>[^<\n]{1,20}</sup>|<cite[^>\n]{0,80}>|</cite>"
    r"|</?(?:br|p|b|i|em|strong|u|ul|ol|li|div|span|h[1-6])\s*/?>"
    r"|<ref[^>\n]{0,80}/>|<ref[^>\n]{0,80}>[^<\n]{0,200}</ref>"
    r"|<\|[\w-]{2,30}\|>|</?s>|<(?:bos|eos|pad|start_of_turn|end_of_turn)>|\[/?INST\]",
    re.IGNORECASE | re.MULTILINE,
)
_REASONING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What a model thinks before it answers, as served without a reasoning parser."""
_ENTITY = re.compile(r"&(?:#\d{2,6}|#x[\da-fA-F]{2,5}|[a-zA-Z]{2,8});")
_LINK = re.compile(r"(?<=\])\(https?://[^)\s]+\)|https?://[^\s)\]]+")
_MATH = re.compile(r"\$(?=[^\s$])([^$\n]{0,80}?[^\s$])\$(?!\d)")
_EMPHASIS = re.compile(r"(?<=[^\W_])[*_]{1,3}(?=['’][^\W_])")
"""The end or beginning of emphasis within a word, as in `*it*'s` and `it*'s*`."""
_COMMAND = re.compile(r"\\[a-zA-Z]+|\\[()\[\]]")
_AROUND = re.compile(
    r"\\(?:boxed|fbox|text[a-z]{0,2}|math[a-z]{2}|emph|underline)\{([^{}\n]{0,80})\}"
)
"""A LaTeX command around words, as in `\\boxed{5}`."""
_IN_JSON = re.compile(r"\A\s*(?:```(?:json)?\s*)?[{\[]\s*\"")
_KEY = re.compile(r'"[\w -]{1,40}"(?=\s*:)|\\(?:[nrt"/]|u[\da-fA-F]{4})|```(?:json)?')
"""A key or an escaped character of JSON, or a fence around it."""


def spaced(pattern: str) -> str:
    """Return a pattern in which each space stands for any white space."""
    return pattern.replace(" ", r"\s+")


def plain(text: str) -> str:
    """Return the text, of equal length, with blanks in place of markup."""
    if _SPECIAL.search(text) is None:
        return text
    text = _ENTITY.sub(_unescaped, text).translate(_WIDE)
    if _IN_JSON.match(text):
        text = _KEY.sub(_blank_of_json, text)
    text = _AROUND.sub(lambda match: match[1].rjust(len(match.group()) - 1) + "\u200b", text)
    for pattern in (_REASONING, _MARKERS, _LINK, _COMMAND):
        text = pattern.sub(_blank, text)
    text = _EMPHASIS.sub(lambda match: "\u200b" * len(match.group()), text)
    return _MATH.sub(lambda match: f" {match[1]} ", text)


def _unescaped(match: re.Match[str]) -> str:
    """Return the character of an HTML entity, padded to its length."""
    sign, size = html.unescape(match.group()), len(match.group())
    return sign.rjust(size, "\u200b") if sign in ("'", "’") else sign.ljust(size)


def _blank_of_json(match: re.Match[str]) -> str:
    written = match.group()
    if written.startswith("\\u"):
        sign = chr(int(written[2:], 16))
        return (" " if unicodedata.category(sign) in ("Cc", "Cs") else sign).ljust(len(written))
    return (" \n" if written in ("\\n", "\\r") else "").ljust(len(written))


def _blank(match: re.Match[str]) -> str:
    sign = "×" if match.group() in ("\\times", "\\cdot") else ""
    return sign.ljust(len(match.group()))
